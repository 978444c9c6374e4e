"""`vllm bench serve --save-result` (one JSON object; with `--append-result` several).

Written by `vllm/benchmarks/serve.py` of vllm-project/vllm, read at 0.32.0. Its clock starts at the call. TTFT ends at
the first frame with `choices`, in chat often one that names the role and holds no text; ITL is the gap between frames.
`--save-detailed` adds lists by request, in which a failed one has zeros; before 0.10 these had no start times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Length, Lengths, Throughput
from nilometer.metrics.quantiles import distribution as of_ns

from .fields import Fields
from .figures import distribution, over
from .opened import Opened
from .request import COUNTED, Seen, error_kind, record
from .stamps import local_ns
from .told import Notes, Told

_OWN = {"ttft": "ttft", "tpot": "tpot", "frame_gap": "itl", "e2e": "e2el"}
"""Latency of ours -> that of the tool that agrees with it."""
_STATS = {"mean": "mean", "p50": "median", "sd": "std"}
_CHAT = "openai-chat"
_STREAMED = ("ttft", "tpot", "frame_gap")


class _Lists(NamedTuple):
    """The lists by request; None where the file has none."""

    ttft: list[float | None] | None
    gaps: list[list[float | None]] | None
    output: list[float | None] | None
    input: list[float | None] | None
    latency: list[float | None] | None
    start: list[float | None] | None
    error: list[str] | None

    def failed(self, place: int) -> bool:
        """An error was told, or there is nothing but zeros."""
        if self.error is not None and self.error[place]:
            return True
        return not any(one is not None and one[place] for one in (self.ttft, self.output, self.latency))


def claims(opened: Opened) -> bool:
    """Its own names for model, duration and rates."""
    return opened.names >= {"model_id", "duration", "completed", "request_throughput"}


def read(opened: Opened) -> Iterator[Told]:
    """One run for each object."""
    for line, members in opened.objects():
        notes = Notes()
        yield _run(Fields(opened.path, members, notes, line=line), notes)


def _run(fields: Fields, notes: Notes) -> Told:
    lists = _lists(fields)
    ok = fields.whole("completed")
    told = Told(
        notes=notes,
        started_ns=local_ns(fields, "date", notes),
        model=fields.text("model_id"),
        api=_api(fields),
        load=_load(fields, notes),
        duration_s=fields.number("duration"),
        counts=_counts(fields, ok),
        throughput=Throughput(
            output_tokens_per_s=fields.number("output_throughput"),
            input_tokens_per_s=over(fields.number("total_input_tokens"), fields.number("duration")),
            requests_per_s=fields.number("request_throughput"),
            goodput_requests_per_s=fields.number("request_goodput"),
        ),
        lengths=Lengths(
            input=Length(mean=over(fields.number("total_input_tokens"), ok)),
            output=Length(mean=over(fields.number("total_output_tokens"), ok)),
        ),
        server=_speculation(fields),
    )
    if not ok:
        notes.add("import_all_failed", severity="high")
    elif lists.ttft is not None and lists.output is not None:
        _by_request(told, lists, fields)
    else:
        told.latency_ms = _figures(fields, ok, lists)
        if told.api == "chat":
            notes.add("import_first_frame_may_be_empty", "ttft", "medium")
    notes.add("import_start_at_call", "ttft")
    notes.add("import_itl_of_frames", "frame_gap")
    return told


def _by_request(told: Told, lists: _Lists, fields: Fields) -> None:
    """Requests from the lists; on one clock where these have start times."""
    notes = told.notes
    seen = [_seen(lists, place, told.api == "chat") for place in range(len(lists.ttft or ()))]
    told.placed = lists.start is not None
    base = min((one.start_s for one in seen if one.start_s), default=0.0)
    shifted = [one._replace(start_s=max(one.start_s - base, 0.0)) for one in seen]
    told.records = [record(place, one, notes) for place, one in enumerate(shifted)]
    failed = sum(one.outcome != "ok" for one in seen)
    if failed:
        notes.add("import_failed_zeros", n=failed)
    told.stream = any(one.ttft_s for one in seen)
    told.counts = None
    notes.add("import_tokens_by_either", "output_tokens")
    if not told.placed:
        told.latency_ms = {"e2e": _figures(fields, len(seen) - failed, lists)["e2e"]}


def _seen(lists: _Lists, place: int, chat: bool) -> Seen:
    ttft, tokens = _at(lists.ttft, place), _at(lists.output, place)
    error = lists.error[place] if lists.error is not None else None
    start = _at(lists.start, place) or 0.0
    if lists.failed(place):
        return Seen(start_s=start, outcome="error", error=error_kind(error), detail=error, prompt_tokens=None)
    gaps = lists.gaps[place] if lists.gaps is not None else None
    latency = _at(lists.latency, place)
    whole = tokens is not None and tokens > 1 and gaps is not None and not gaps
    if latency is None and ttft is not None and gaps is not None:
        latency = ttft + math.fsum(gap or 0.0 for gap in gaps)
    return Seen(
        start_s=start,
        ttft_s=None if whole else ttft,
        gaps_s=None if whole else gaps,
        empty="either" if chat else "end",
        e2e_s=latency,
        prompt_tokens=_count(_at(lists.input, place)),
        output_tokens=_count(tokens),
        token_source=COUNTED,
    )


def _lists(fields: Fields) -> _Lists:
    """Refuses `result_field` where they are not of one length."""
    lists = _Lists(
        fields.numbers("ttfts"),
        fields.lists("itls"),
        fields.numbers("output_lens"),
        fields.numbers("input_lens"),
        fields.numbers("latencies"),
        fields.numbers("start_times"),
        fields.take("errors", list[str]),
    )
    sizes = {len(one) for one in lists if one is not None}
    if len(sizes) > 1:
        raise fields.refused("ttfts", f"{sorted(sizes)}")
    return lists


def _figures(fields: Fields, ok: int, lists: _Lists) -> dict[str, Distribution]:
    """The tool's own figures; E2E from its list, which newer versions always write."""

    def of(name: str) -> Distribution:
        def value(stat: str) -> float | None:
            if stat not in _STATS and not stat.startswith("p"):
                return None
            found = fields.number(f"{_STATS.get(stat, stat)}_{name}_ms")
            return fields.number(f"p50_{name}_ms") if found is None and stat == "p50" else found

        return distribution(value, None if name == "itl" else ok)

    made = {ours: of(theirs) for ours, theirs in _OWN.items()}
    if made["e2e"] == Distribution() and lists.latency is not None:
        made["e2e"] = _spread([one for one in lists.latency if one])
    return made


def _spread(seconds: Sequence[float]) -> Distribution:
    return of_ns(np.array(seconds) * NS_PER_S)


def _counts(fields: Fields, ok: int | None) -> Counts:
    """`failed` is there since 0.11; before, what was asked minus what was answered."""
    asked, failed = fields.whole("num_prompts"), fields.whole("failed")
    if failed is None and asked is not None and ok is not None and asked >= ok:
        failed = asked - ok
    started = None if failed is None or ok is None else ok + failed
    unknown = None if failed is None else 0
    return Counts(started=started, ok=ok, error=failed, incomplete=unknown, cancelled=unknown, censored=unknown)


def _load(fields: Fields, notes: Notes) -> Load:
    """Without a rate all come at once, up to the cap: a closed loop of so many."""
    rate, cap = fields.rate("request_rate"), fields.whole("max_concurrency")
    asked = fields.whole("num_prompts")
    if rate is not None and math.isfinite(rate):
        if cap:
            notes.add("import_rate_capped", n=cap)
        burstiness = fields.number("burstiness")
        arrivals = "poisson" if burstiness in (None, 1.0) else f"gamma:{1 / math.sqrt(burstiness or 1.0):g}"
        return Load(rate_per_s=rate, arrivals=arrivals, requests=asked)
    if not cap and asked:
        notes.add("import_all_at_once", n=asked)
    return Load(concurrency=cap or asked, requests=asked)


def _api(fields: Fields) -> str | None:
    backend = fields.text("backend") or fields.text("endpoint_type")
    return {_CHAT: "chat", "openai": "completions", "vllm": "completions"}.get(backend or "")


def _speculation(fields: Fields) -> dict[str, float | None]:
    """Acceptance of speculative decoding, which the tool reads from the server; its rate is in per cent."""
    rate, length = fields.number("spec_decode_acceptance_rate"), fields.number("spec_decode_acceptance_length")
    told = {"spec_accept_rate": None if rate is None else rate / 100, "spec_accept_length": length}
    return {name: value for name, value in told.items() if value is not None}


def _at(values: Sequence[float | None] | None, place: int) -> float | None:
    return None if values is None else values[place]


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)
