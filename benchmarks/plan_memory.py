"""Plans of memory against what engines said at start: KV GiB per GPU, and tokens and concurrency given the GiB.

Weights are the logged ones, so that the figures are of the memory plan alone. Rows that cannot be judged are shown and
say why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .plan_rows import NO_KV_GIB, NO_TOKENS, Logged, Made, logged, made, planned_kv_gib, pool_given_kv
from .result import Row, judged, shown

WHY = {
    "flags_unknown": "flags not given",
    "remainder": "what rounding leaves",
    "approximate": "approximate in its source",
    "other_rank": "of another rank's pool",
}
SHARE_WITHIN = 5.0


def plan_memory() -> list[Row]:
    """A row of each start-up and of each goal."""
    rows = [one for row in logged() for one in (*_kv_rows(row), *_token_rows(row))]
    return [*rows, *[one for row in made() for one in _made_rows(row)], *_goals()]


def _made_rows(row: Made) -> Sequence[Row]:
    """llama.cpp: its cache, and the buffer it computes in."""
    figures = (("cache", row.kv_mib), ("compute buffer", row.compute_mib))
    return [
        shown(
            f"{row.id} {row.name}: {what}",
            100 * (planned / told - 1),
            unit="%",
            note=f"{planned:.2f} against {told:.2f} MiB",
        )
        for what, (told, planned) in figures
    ]


def kv_error(row: Logged) -> float | None:
    """KV GiB: percent, planned less logged; None where there is nothing to compare."""
    plan = planned_kv_gib(row)
    return None if plan is None or row.kv_gib is None else 100 * (plan[1] / row.kv_gib - 1)


def token_errors(row: Logged) -> tuple[float, ...]:
    """Tokens and concurrency given KV GiB: percent; the rounding of the concurrency's two digits is allowed for."""
    held = pool_given_kv(row)
    if held is None:
        return ()
    errors = []
    if row.kv_tokens is not None:
        errors.append(100 * (held.tokens / row.kv_tokens - 1))
    if row.concurrency is not None:
        off = held.concurrency - row.concurrency
        errors.append(100 * max(0.0, abs(off) - 0.005) / row.concurrency * (1 if off > 0 else -1))
    return tuple(errors)


def _kv_rows(row: Logged) -> Sequence[Row]:
    error, plan = kv_error(row), planned_kv_gib(row)
    if error is None or plan is None:
        return ()
    note = f"{plan[1]:.2f} [{plan[0]:.2f}, {plan[2]:.2f}] against {row.kv_gib:.2f} GiB" + _doubt(row, NO_KV_GIB)
    return (shown(f"{row.id} {_short(row)}: KV GiB", error, unit="%", note=note),)


def _token_rows(row: Logged) -> Sequence[Row]:
    held = pool_given_kv(row)
    if held is None or row.kv_tokens is None:
        return ()
    error = 100 * (held.tokens / row.kv_tokens - 1)
    note = f"{held.tokens} against {row.kv_tokens}" + _doubt(row, NO_TOKENS)
    return (shown(f"{row.id} {_short(row)}: tokens given GiB", error, unit="%", note=note),)


def _short(row: Logged) -> str:
    spread = "".join(f" {key}{n}" for key, n in (("TP", row.tensor), ("PP", row.pipeline)) if n > 1)
    return f"{row.model.rsplit('/', 1)[-1]}{spread}, vLLM {row.planned_as}"


def _doubt(row: Logged, unjudged: set[str]) -> str:
    return f"; not judged: {WHY[row.doubt]}" if row.doubt in unjudged else ""


def _goals() -> list[Row]:
    recent = _errors(lambda row: row.recent)
    older = _errors(lambda row: not row.recent)
    flat = [abs(e) for row in _sure_tokens() if row.pipeline == 1 for e in token_errors(row)]
    staged = [abs(e) for row in _sure_tokens() if row.pipeline > 1 for e in token_errors(row)]
    within = 100 * sum(e > SHARE_WITHIN for e in recent) / len(recent)
    inside = [_inside(row) for row in logged() if row.doubt not in NO_KV_GIB and kv_error(row) is not None]
    return [
        judged("KV GiB, vLLM >= 0.17: mean error", _mean(recent), absolute=1.5, unit="%", note=_count(recent)),
        judged("KV GiB, vLLM >= 0.17: rows off by more than 5 %", within, absolute=5, unit="% of rows"),
        judged("KV GiB, older vLLM, other cards: mean error", _mean(older), absolute=5, unit="%", note=_count(older)),
        judged(
            "tokens and concurrency given GiB: greatest error", max(flat), absolute=0.1, unit="%", note=_count(flat)
        ),
        judged("the same with pipeline stages", max(staged), absolute=2, unit="%", note=_count(staged)),
        shown("KV GiB inside the 80 % interval", 100 * sum(inside) / len(inside), unit="%", note=_count(inside)),
    ]


def _errors(which: Callable[[Logged], bool]) -> list[float]:
    rows = [row for row in logged() if which(row) and row.doubt not in NO_KV_GIB]
    return [abs(error) for row in rows if (error := kv_error(row)) is not None]


def _sure_tokens() -> list[Logged]:
    return [row for row in logged() if row.doubt not in NO_TOKENS]


def _inside(row: Logged) -> bool:
    plan = planned_kv_gib(row)
    return (
        plan is not None and row.kv_gib is not None and plan[0] <= row.kv_gib + 0.005 and row.kv_gib <= plan[2] + 0.005
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _count(values: Sequence[object]) -> str:
    return f"{len(values)} values"
