"""The faults made on the real engine: settings of its own, of the machine under it and of a proxy in front.

The first setting of a kind is there to tune the rules on, the others to score them.
"""

from __future__ import annotations

from typing import NamedTuple

from .on_the_way import BUFFERS, Way, beside_burners, duty, neighbour, nginx, nothing


class Case(NamedTuple):
    """One setting of one kind. `also`: other answers that are true of it."""

    kind: str
    setting: str
    flags: str = ""
    way: Way = nothing
    input_tokens: str = "uniform:36,96"
    output_tokens: str = "uniform:8,32"
    shared_prefix: int = 0
    levels: tuple[int, ...] = (1, 4, 8)
    duration_s: float = 12.0
    """Of a level: some waves of answers of its greatest load."""
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.setting}"


def _limited(rate: str, status: int, burst: str = "") -> Way:
    return nginx(
        f"limit_req zone=z{burst}; limit_req_status {status}; proxy_buffering off; proxy_http_version 1.1;",
        zone=f"limit_req_zone $server_name zone=z:1m rate={rate};",
    )


CASES: tuple[Case, ...] = (
    *(Case("queue", f"np{n}", f"-np {n} -c {n * 512}", levels=(1, 4, 8), duration_s=18.0) for n in (1, 2, 3)),
    *(
        Case("static_batching", f"np{n}", f"-nocb -np {n} -c {n * 512}", levels=(1, 4, 12), duration_s=16.0)
        for n in (4, 6, 8)
    ),
    *(
        Case(
            "prefill",
            f"p{p}",
            "--no-cache-prompt -np 8 -c 24576",
            input_tokens=f"uniform:{p // 2},{p * 3 // 2}",
            output_tokens="uniform:4,8",
            levels=(1, 4, 8),
            duration_s=20.0,
            also=("prefill_stalls",),
        )
        for p in (400, 700, 1000)
    ),
    *(
        Case(
            "prefill_stalls",
            f"ub{ub}",
            f"--no-cache-prompt -b {ub} -ub {ub} -np 8 -c 24576",
            input_tokens=f"uniform:300,{high}",
            output_tokens="uniform:48,96",
            levels=(1, 3, 6),
            duration_s=25.0,
        )
        for ub, high in ((2048, 900), (2048, 1500), (1024, 1200))
    ),
    *(
        Case(
            "decode_compute",
            f"t{t}-o{output}",
            f"-t {t} -np 16 -c 8192",
            input_tokens="uniform:34,44",
            output_tokens=f"uniform:{output // 2},{output}",
            levels=(1, 4, 8, 16),
            duration_s=12.0,
        )
        for t, output in ((1, 48), (1, 96), (2, 64))
    ),
    *(
        Case("kv_reserved", f"c{c}-np{n}", f"-c {c} -np {n}", levels=(1, 4, 8), duration_s=18.0)
        for c, n in ((16384, 2), (16384, 1), (32768, 3))
    ),
    *(
        Case(
            "prefix_flattered",
            f"prefix{prefix}",
            "--cache-prompt -np 8 -c 16384",
            input_tokens=f"uniform:{prefix + 16},{prefix + 64}",
            shared_prefix=prefix,
            levels=(1, 2),
        )
        for prefix in (128, 256, 512)
    ),
    *(
        Case(
            "noisy_neighbour",
            f"{on}of{period}",
            "-t 2",
            neighbour(n, on, period - on),
            duration_s=14.0,
        )
        for n, on, period in ((4, 1.0, 3.0), (6, 1.0, 4.0), (4, 2.0, 5.0))
    ),
    *(
        Case("throttling", f"{period}-{share}", "", duty(period, share), duration_s=14.0)
        for period, share in ((0.2, 0.6), (0.4, 0.6), (0.8, 0.5))
    ),
    *(
        Case("generator_limited", f"burners{n}", "-t 1", beside_burners(n), output_tokens="uniform:24,48")
        for n in (3, 5, 8)
    ),
    Case("buffered_stream", "default", "", nginx("")),
    Case(
        "buffered_stream",
        "http11",
        "",
        nginx(f"proxy_http_version 1.1; {BUFFERS}"),
    ),
    Case("buffered_stream", "long", "-c 8192", nginx(""), output_tokens="uniform:48,96", duration_s=14.0),
    Case("rate_limit", "2-429", "", _limited("2r/s", 429)),
    Case("rate_limit", "4-429-burst", "", _limited("4r/s", 429, " burst=2 nodelay")),
    Case("rate_limit", "3-503", "", _limited("3r/s", 503)),
    *(
        Case(
            "front_end",
            f"http{n}",
            f"--threads-http {n} -np 8",
            levels=(1, 4, 8),
            duration_s=16.0,
            also=("queue", "client_pool"),
        )
        for n in (1, 2, 3)
    ),
    *(
        Case("short_answers", f"n{n}", f"-n {n} -np 8", output_tokens="uniform:48,80", levels=(1, 2))
        for n in (8, 16, 24)
    ),
    *(Case("unreal_lengths", f"p{p}", "-np 8", input_tokens=str(p), levels=(1, 2)) for p in (40, 64, 128)),
    *(
        Case("healthy", f"o{output}-{levels[-1]}", "-np 8 -t 2", output_tokens=f"uniform:8,{output}", levels=levels)
        for output, levels in ((24, (1, 2)), (32, (1, 2)), (48, (1, 2)), (64, (1, 2)), (40, (1,)), (24, (1,)))
    ),
)


def is_scored(case: Case) -> bool:
    """Whether the rules were not tuned on it."""
    return next(one for one in CASES if one.kind == case.kind) is not case
