"""Runs and records with known content for the tests of the archive; nothing here is measured."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from nilometer.core.environment import Client, EngineFacts, Environment, Machine
from nilometer.core.finding import Evidence, Finding
from nilometer.core.record import LATE, SHARED, Frames, Record
from nilometer.core.run import Health, Phases, Run
from nilometer.core.spec import Http, Labels, Load, Spec
from nilometer.core.summary import (
    Counts,
    Distribution,
    Generator,
    Length,
    Lengths,
    Memory,
    Second,
    Summary,
    Throughput,
    Window,
)

STARTED_WALL_NS = 1_786_000_000_123_456_789


def int64(*values: int) -> bytes:
    """Packed as Frames and Health hold them."""
    return array("q", values).tobytes()


def make_spec(**labels: str) -> Spec:
    """A closed loop of 16 on a named target, with a masked header."""
    return Spec(
        target="http://127.0.0.1:8000/v1",
        model="llama",
        load=Load(concurrency=16),
        http=Http(headers={"X-Team": "***"}),
        labels=Labels(**labels),  # type: ignore[arg-type]
    )


def make_summary(ttft_p95: float | None = 480.125) -> Summary:
    """Figures of every section, some not measured."""
    ttft = Distribution() if ttft_p95 is None else Distribution(n=610, mean=231.5, p95=ttft_p95, marked=["p99"])
    return Summary(
        window=Window(start_s=60.0, end_s=180.0, rule="guide", steady=True),
        requests=Counts(started=613, ok=610, error=3, errors={"http_5xx": 3}),
        run_requests=Counts(started=900, ok=896, error=4, errors={"http_5xx": 4}),
        latency_from="sent",
        latency_ms={"ttft": ttft, "tpot": Distribution(n=610, p95=25.9), "itl": Distribution()},
        throughput=Throughput(output_tokens_per_s=650.5, tokens_lost=12),
        lengths=Lengths(output=Length(mean=128.0, max=128), token_source={"usage": 610}),
        generator=Generator(verdict="fit", cpu_share=0.05, loop_lag_ms=Distribution(n=1800, p99=0.4)),
        memory=Memory(server_rss_peak_bytes=1_234_567_890, source="psutil"),
        server={"kv_usage": 0.41, "preemptions": None},
        timeline=[Second(at_s=-1, in_flight=16.0, output_tokens=640.0, arrivals=5, errors=0)],
    )


def make_run(run_id: str = "k3v9c2mq7x1d", **fields: Any) -> Run:
    """A whole run; `fields` replace those of the Run."""
    whole: dict[str, Any] = {
        "id": run_id,
        "spec": make_spec(),
        "environment": Environment(
            machine=Machine(cpu_model="EPYC", cpu_count=2, devices=["none"]),
            engine=EngineFacts(name="llama.cpp", flags=["--max-tokens", "128"]),
            client=Client(nilometer="0.1.0", python="3.11.7"),
        ),
        "phases": Phases(started_wall_ns=STARTED_WALL_NS, start_ns=5, measured_ns=60, stop_ns=240, end_ns=250),
        "health": Health(at=int64(100, 200, 301), wall_offset=int64(7, 7, 8), cpu=b"odd", wall_steps=1),
        "summary": make_summary(),
        "findings": [
            Finding(
                slug="errors_over_limit",
                kind="validity",
                severity="high",
                params={"share": 0.004, "limit": 0.01},
                evidence=[Evidence(name="error", value=3, n=613, unit="1")],
            )
        ],
        "verdict": "admissible",
        "tool_version": "0.1.0",
    }
    return Run(**(whole | fields))


def make_record(seq: int, n_frames: int = 3, **fields: Any) -> Record:
    """One ok request of a closed loop: kernel stamps, one shared read, usage."""
    sent_ns = 1_000_000_000 + seq * 7_000_003
    kernel = [sent_ns + 200_000_000 + i * 20_000_000 + (seq * 31 + i * 17) % 90_000 for i in range(n_frames)]
    whole: dict[str, Any] = {
        "id": f"{seq:012x}",
        "seq": seq,
        "phase": "measured",
        "outcome": "ok",
        "sent_ns": sent_ns,
        "sent_end_ns": sent_ns + 30_000,
        "first_byte_ns": sent_ns + 199_000_000,
        "first_token_ns": kernel[0] if kernel else None,
        "last_token_ns": kernel[-1] if kernel else None,
        "end_ns": sent_ns + 900_000_000,
        "status": 200,
        "finish_reason": "length",
        "prompt_tokens": 512,
        "output_tokens": n_frames,
        "token_source": "usage",
        "connection": seq % 4,
        "new_connection": seq < 4,
        "stamp_source": "kernel",
        "frames": Frames(
            user=int64(*(at_ns + 5_000 + (i * 7919) % 295_000 for i, at_ns in enumerate(kernel))),
            kernel=int64(*kernel),
            flags=bytes([SHARED, LATE, *([0] * (n_frames - 2))][:n_frames]),
        ),
    }
    return Record(**(whole | fields))


def make_records(n: int, n_frames: int = 3) -> Iterator[Record]:
    """`n` of them, one after the other."""
    return (make_record(seq, n_frames) for seq in range(n))
