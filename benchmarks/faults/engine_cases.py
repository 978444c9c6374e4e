"""The faults made on the real engine: settings of its own, of the machine under it and of a proxy in front.

The first setting of a kind is there to tune the rules on, the others to score them. With one thread this engine makes
as many tokens a second alone as with others, and a prompt stops all its streams: where a fault of another kind is to be
seen, it is the greater one, or there is one request at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from .on_the_way import Relay, Way, dozing, duty, neighbour, nginx, nothing, pool, relayed


class Case(NamedTuple):
    """One setting of one kind. `also`: other answers that are true of it."""

    kind: str
    setting: str
    flags: str = ""
    way: Way = nothing
    input_tokens: str = "uniform:36,96"
    output_tokens: str = "uniform:8,32"
    shared_prefix: int = 0
    levels: tuple[int, ...] = (1, 8)
    duration_s: float = 12.0
    """Of a level: some waves of answers of its greatest load."""
    also: tuple[str, ...] = ()
    also_client: tuple[str, ...] = ()
    """What is as true where the server shows nothing of itself."""

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.setting}"


def _limited(rate: str, status: int, burst: str = "") -> Way:
    return nginx(
        f"limit_req zone=z{burst}; limit_req_status {status}; proxy_buffering off; proxy_http_version 1.1;",
        zone=f"limit_req_zone $server_port zone=z:1m rate={rate};",
    )


CASES: tuple[Case, ...] = (
    *(Case("queue", f"np{n}", f"-np {n} -c {n * 512}") for n in (2, 1, 3)),
    *(Case("static_batching", f"np{n}", f"-nocb -np {n} -c {n * 512}", levels=(1, 12)) for n in (4, 6, 8)),
    *(
        Case(
            "prefill",
            f"p{p}",
            "--no-cache-prompt -np 8 -c 24576",
            input_tokens=f"uniform:{p // 2},{p * 3 // 2}",
            output_tokens="uniform:4,8",
            levels=(1, 4),
            duration_s=32.0,
            also=("prefill_stalls",),
        )
        for p in (400, 300, 600)
    ),
    *(
        Case(
            "prefill_stalls",
            f"ub{ub}-p{high}",
            f"--no-cache-prompt -b {ub} -ub {ub} -np 8 -c 24576",
            input_tokens=f"uniform:200,{high}",
            output_tokens="uniform:32,64",
            levels=(1, 4),
            duration_s=30.0,
        )
        for ub, high in ((2048, 600), (2048, 800), (1024, 500))
    ),
    *(
        Case(
            "decode_compute",
            f"t{t}-o{output}",
            f"-t {t} -np 16 -c 8192",
            input_tokens="uniform:34,44",
            output_tokens=f"uniform:{output // 2},{output}",
            levels=(1, 4, 12),
        )
        for t, output in ((1, 48), (1, 80), (2, 64))
    ),
    *(
        Case("kv_reserved", f"c{c}-np{n}", f"-c {c} -np {n}", also_client=("queue",))
        for c, n in ((16384, 2), (16384, 1), (32768, 3))
    ),
    *(
        Case(
            "prefix_flattered",
            f"prefix{prefix}",
            "--cache-prompt -np 8 -c 16384",
            input_tokens=f"uniform:{prefix + 16},{prefix + 64}",
            shared_prefix=prefix,
            levels=(1,),
            duration_s=20.0,
        )
        for prefix in (128, 256, 512)
    ),
    *(
        Case(
            "noisy_neighbour",
            f"{n}x{on}of{period}",
            "-t 1",
            neighbour(n, on, period - on),
            levels=(1,),
            duration_s=20,
        )
        for n, on, period in ((3, 1.0, 4.0), (5, 0.6, 3.0), (2, 1.5, 5.0))
    ),
    *(
        Case("throttling", f"{period}-{share}", "", duty(period, share), levels=(1, 4))
        for period, share in ((0.2, 0.6), (0.4, 0.6), (0.8, 0.5))
    ),
    *(
        Case("generator_limited", f"{period}-{share}", "-t 1", dozing(period, share), output_tokens="uniform:24,48")
        for period, share in ((0.3, 0.6), (0.15, 0.6), (0.5, 0.7))
    ),
    *(
        Case(
            "buffered_stream",
            f"{held >> 10}k",
            "-c 8192",
            relayed(Relay(held_bytes=held)),
            output_tokens=output,
            levels=(1, 2),
        )
        for held, output in ((1 << 16, "uniform:8,32"), (4 << 10, "uniform:32,64"), (1 << 20, "uniform:24,48"))
    ),
    Case("rate_limit", "2-429", "", _limited("2r/s", 429)),
    Case("rate_limit", "4-429-burst", "", _limited("4r/s", 429, " burst=2 nodelay")),
    Case("rate_limit", "3-503", "", _limited("3r/s", 503)),
    *(
        Case("front_end", f"{each_ms}ms", "-np 8", relayed(Relay(each_s=each_ms / 1000)), output_tokens="uniform:4,12")
        for each_ms in (250, 180, 350)
    ),
    *(Case("client_pool", f"pool{n}", "-np 8", pool(n)) for n in (2, 1, 3)),
    *(
        Case(
            "failures",
            f"{share}-{again_s}s",
            "-np 8",
            relayed(Relay(lost_share=share, again_s=again_s)),
            levels=(1, 2),
            duration_s=20.0,
        )
        for share, again_s in ((0.08, 1.0), (0.12, 1.5), (0.06, 2.0))
    ),
    *(
        Case("unreal_lengths", f"p{p}", "-np 8", input_tokens=str(p), levels=(1,), duration_s=16.0)
        for p in (40, 64, 128)
    ),
    *(
        Case("healthy", name, flags, output_tokens=output, input_tokens=prompt, levels=(1,), duration_s=16.0)
        for name, flags, prompt, output in (
            ("short", "-np 8", "uniform:36,96", "uniform:8,24"),
            ("plain", "-np 8", "uniform:36,96", "uniform:8,40"),
            ("long", "-np 4", "uniform:40,120", "uniform:32,64"),
            ("prompts", "-np 8 -c 8192", "uniform:60,240", "uniform:8,24"),
            ("threads", "-t 2", "uniform:36,96", "uniform:8,32"),
            ("one-slot", "-np 1 -c 512", "uniform:36,96", "uniform:8,32"),
        )
    ),
)


def is_scored(case: Case) -> bool:
    """Whether the rules were not tuned on it."""
    return next(one for one in CASES if one.kind == case.kind) is not case
