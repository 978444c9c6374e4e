"""`python -m sglang.bench_serving --output-file` (JSON lines, a run appended to those before it).

Written by `python/sglang/benchmark/serving.py` of sgl-project/sglang, read at 0.5.23 (before: `bench_serving.py`). Its
clock starts at the call, TTFT ends at the first text or reasoning, E2E at `[DONE]`; TPOT = (E2E - TTFT) / (n - 1). How
many failed and which model it was the file does not say. `--output-details` adds lists by request without start times,
in which a failed one has zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from nilometer.core.environment import EngineFacts, Environment
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Length, Lengths, Throughput

from .fields import Fields
from .figures import distribution, over
from .opened import Opened
from .request import COUNTED, Seen, error_kind, record
from .told import Notes, Told

_OWN = {"ttft": "ttft", "tpot": "tpot", "frame_gap": "itl", "e2e": "e2e_latency"}
"""Latency of ours -> that of the tool that agrees with it."""
_STATS = {"mean": "mean", "p50": "median", "sd": "std", "p90": "p90", "p95": "p95", "p99": "p99"}
_APIS = {"sglang-oai-chat": "chat", "vllm-chat": "chat", "lmdeploy-chat": "chat"}
_RETOKENISED_SHARE = 0.01


def claims(opened: Opened) -> bool:
    """Its own names for rates and the count of tokens by its tokenizer."""
    return opened.names >= {"backend", "duration", "completed", "total_output_tokens_retokenized"}


def read(opened: Opened) -> Iterator[Told]:
    """One run for each line."""
    for line, members in opened.objects():
        notes = Notes()
        yield _run(Fields(opened.path, members, notes, line=line), notes)


def _run(fields: Fields, notes: Notes) -> Told:
    ok, server = fields.whole("completed"), fields.under("server_info")
    told = Told(
        notes=notes,
        model=server.text("served_model_name") or server.text("model_path"),
        api=_APIS.get(fields.text("backend") or ""),
        load=_load(fields, notes),
        duration_s=fields.number("duration"),
        counts=Counts(started=None, ok=ok, error=None, incomplete=None, cancelled=None, censored=None),
        throughput=Throughput(
            output_tokens_per_s=fields.number("output_throughput"),
            input_tokens_per_s=fields.number("input_throughput"),
            requests_per_s=fields.number("request_throughput"),
        ),
        lengths=Lengths(
            input=Length(mean=over(fields.number("total_input_tokens"), ok)),
            output=Length(mean=over(fields.number("total_output_tokens"), ok)),
        ),
        server={"spec_accept_length": fields.number("accept_length")},
        environment=Environment(engine=EngineFacts(version=server.text("version"))),
    )
    if not ok:
        notes.add("import_all_failed", severity="high")
        return told
    told.latency_ms = {ours: _own(fields, theirs, ok) for ours, theirs in _OWN.items()}
    if "ttfts" in fields:
        _by_request(told, fields)
    else:
        notes.add("import_tpot_to_end", "tpot")
    notes.add("import_start_at_call", "ttft")
    notes.add("import_itl_of_frames", "frame_gap")
    _compare_tokens(fields, notes)
    return told


def _by_request(told: Told, fields: Fields) -> None:
    """What each request has by itself. E2E is not in the lists: the tool's own figures stay."""
    ttfts, tokens, asked = (fields.numbers(name) or [] for name in ("ttfts", "output_lens", "input_lens"))
    gaps = fields.lists("itls") or []
    errors = fields.take("errors", list[str]) or []
    sizes = {len(ttfts), len(tokens), len(asked), len(gaps), len(errors)}
    if len(sizes) > 1:
        raise fields.refused("ttfts", f"{sorted(sizes)}")
    failed = 0
    for place, (ttft, n, into, between, error) in enumerate(zip(ttfts, tokens, asked, gaps, errors, strict=True)):
        if error or not (ttft or n):
            failed += 1
            seen = Seen(outcome="error", error=error_kind(error), detail=error)
        else:
            whole = not between and (n or 0) > 1
            seen = Seen(
                ttft_s=None if whole else ttft,
                gaps_s=None if whole else between,
                prompt_tokens=None if into is None else round(into),
                output_tokens=None if n is None else round(n),
                token_source=COUNTED,
            )
        told.records.append(record(place, seen, told.notes))
    told.stream = any(one.first_token_ns for one in told.records)
    told.counts = None
    if failed:
        told.notes.add("import_failed_zeros", n=failed)


def _own(fields: Fields, name: str, ok: int) -> Distribution:
    def value(stat: str) -> float | None:
        return fields.number(f"{_STATS[stat]}_{name}_ms") if stat in _STATS else None

    return distribution(value, None if name == "itl" else ok)


def _compare_tokens(fields: Fields, notes: Notes) -> None:
    """The server's count (or the length that was asked) beside the tool's own tokenizer's."""
    told, own = fields.number("total_output_tokens"), fields.number("total_output_tokens_retokenized")
    if told and own and abs(own - told) > _RETOKENISED_SHARE * told:
        notes.add("import_tokens_disagree", "output_tokens", counted=round(told), own=round(own))
    notes.add("import_tokens_maybe_asked", "output_tokens")


def _load(fields: Fields, notes: Notes) -> Load:
    cap = fields.whole("max_concurrency")
    if fields.text("request_rate") == "trace":
        return Load(arrivals="recorded")
    rate = fields.rate("request_rate")
    if rate is not None and math.isfinite(rate):
        if cap:
            notes.add("import_rate_capped", n=cap)
        return Load(rate_per_s=rate, arrivals="poisson")
    if rate == math.inf and not cap:
        notes.add("import_all_at_once", n=fields.whole("completed"))
    return Load(concurrency=cap)
