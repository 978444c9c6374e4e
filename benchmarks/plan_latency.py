"""Plans of latency against published measurements: TPOT, TTFT and throughput, row by row, with their intervals.

Each row is planned with what its source states; what it does not is in the column `assumed`, and a row that its own
source contradicts is in `doubt`: shown, and in the goals too, beside which the figure without them stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log
from statistics import median

from nilometer.plan.interval import Interval
from nilometer.plan.latency.calibrate import Measured, calibrate
from nilometer.plan.latency.roofline import Tuning

from .plan_latency_rows import Published, planned, published, with_slots
from .result import Row, judged, shown

LEAST_OF_A_GROUP = 2
"""Three are asked for; the rows at hand, half of all there are, have too few such groups."""


def plan_latency() -> list[Row]:
    """A row of each measurement and of each goal."""
    return [*(made for row in published() for made in _shown(row)), *_goals()]


def tpot_error(row: Published, tuning: Tuning | None = None) -> float | None:
    """Percent, planned against measured; None where either is missing."""
    plan = planned(row, tuning) if tuning else planned(row)
    return None if plan is None or row.tpot_ms is None else 100 * (plan.tpot_s.mid * 1e3 / row.tpot_ms - 1)


def ttft_error(row: Published) -> float | None:
    """The same of TTFT."""
    plan = planned(row)
    return None if plan is None or row.ttft_ms is None else 100 * (plan.ttft_s.mid * 1e3 / row.ttft_ms - 1)


def throughput_error(row: Published) -> float | None:
    """The same of output tokens per second, where the engine was full."""
    plan = planned(row)
    if plan is None or row.output_tokens_per_s is None or row.kind != "throughput":
        return None
    return 100 * (plan.output_tokens_per_s.mid / row.output_tokens_per_s - 1)


def covered(row: Published, tuning: Tuning | None = None) -> bool | None:
    """Whether the interval holds what was measured: TPOT, or throughput where the engine was full."""
    plan = planned(row, tuning) if tuning else planned(row)
    if plan is None:
        return None
    if row.kind == "throughput":
        return row.output_tokens_per_s is not None and _holds(plan.output_tokens_per_s, row.output_tokens_per_s)
    return None if row.tpot_ms is None else _holds(plan.tpot_s, row.tpot_ms / 1e3)


def _holds(interval: Interval, value: float) -> bool:
    return interval.low <= value <= interval.high


def groups(*, doubtful: bool = False) -> Sequence[Sequence[Published]]:
    """Rows of one configuration, by load."""
    found: dict[tuple[object, ...], list[Published]] = {}
    for row in published():
        if row.tpot_ms is not None and row.concurrency is not None and (doubtful or not row.doubt):
            found.setdefault(row.group, []).append(row)
    grown = (sorted(rows, key=lambda row: row.concurrency or 0.0) for rows in found.values())
    return [rows for rows in grown if len(rows) >= LEAST_OF_A_GROUP]


def scaled(rows: Sequence[Published]) -> tuple[Tuning, Sequence[Published]]:
    """The tuning by the row of the middle load, and the other rows of its group."""
    middle = rows[(len(rows) - 1) // 2]
    measured = Measured(
        concurrency=middle.concurrency or 1.0,
        input_tokens=middle.lengths.input,
        output_tokens=middle.lengths.output,
        tpot_ms=middle.tpot_ms or 0.0,
        ttft_ms=middle.ttft_ms,
    )
    return calibrate(with_slots(middle), [measured]), [row for row in rows if row is not middle]


def calibrated(*, doubtful: bool) -> tuple[Sequence[tuple[Published, Tuning]], Sequence[float]]:
    """Every row but the middle one of its group with the group's tuning; percents of their errors."""
    tuned = [(row, tuning) for group in groups(doubtful=doubtful) for tuning, rest in [scaled(group)] for row in rest]
    return tuned, [abs(error) for row, tuning in tuned if (error := tpot_error(row, tuning)) is not None]


def _shown(row: Published) -> Sequence[Row]:
    plan = planned(row)
    if plan is None:
        return (shown(f"{row.id} {_short(row)}", "no answer", note="load not stated"),)
    doubt = f"; assumed: {row.assumed}" if row.assumed else ""
    doubt += f"; doubtful: {row.doubt}" if row.doubt else ""
    source = f"; {row.source.split(' id=')[0]}"
    made = []
    if (error := tpot_error(row)) is not None and row.tpot_ms is not None:
        note = f"{_said(plan.tpot_s.times(1e3))} against {row.tpot_ms:.1f} ms, {plan.bound}{doubt}{source}"
        made.append(shown(f"{row.id} {_short(row)}: TPOT", error, unit="%", note=note))
    if (error := ttft_error(row)) is not None and row.ttft_ms is not None:
        note = f"{_said(plan.ttft_s.times(1e3))} against {row.ttft_ms:.0f} ms{doubt}"
        made.append(shown(f"{row.id} {_short(row)}: TTFT", error, unit="%", note=note))
    if (error := throughput_error(row)) is not None and row.output_tokens_per_s is not None:
        note = f"{_said(plan.output_tokens_per_s)} against {row.output_tokens_per_s:.0f} /s, {plan.bound}{source}"
        made.append(shown(f"{row.id} {_short(row)}: throughput", error, unit="%", note=note))
    return made


def _said(interval: Interval) -> str:
    return f"{interval.mid:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def _short(row: Published) -> str:
    split = row.setup.parallel
    load = "full" if row.concurrency is None else f"x{row.concurrency:g}"
    lengths = f"{row.lengths.input:g}/{row.lengths.output:g}"
    spread = f"TP{split.tensor}" + (f" EP{split.expert}" if split.expert > 1 else "")
    return f"{row.model.split('/')[-1]} {row.setup.device.name} {spread} {row.engine} {lengths} {load}"


def _goals() -> Sequence[Row]:
    rows = published()
    asked = [row for row in rows if row.tpot_ms is not None]
    tpot = _errors(asked, tpot_error)
    sure = _errors([row for row in asked if not row.doubt], tpot_error)
    ttft = _errors([row for row in rows if row.kind == "serving"], ttft_error)
    full = _errors(rows, throughput_error)
    tuned, after = calibrated(doubtful=False)
    _, all_after = calibrated(doubtful=True)
    few = f"{len(after)} rows of groups of {LEAST_OF_A_GROUP} and more, without the doubtful"
    return (
        judged(
            "TPOT untuned: answered", -100 * len(tpot) / len(asked), absolute=-95, unit="%", note="negative: of all"
        ),
        judged(f"TPOT untuned, {len(tpot)} rows: median", median(tpot), absolute=20, unit="%"),
        shown(f"TPOT untuned, {len(sure)} rows without the doubtful: median", median(sure), unit="%"),
        shown("TPOT untuned: mean", sum(tpot) / len(tpot), unit="%"),
        shown("TPOT untuned: p90", _quantile(tpot, 0.9), unit="%"),
        judged("TPOT after one measurement: median", median(after), absolute=10, unit="%", note=few),
        judged("TPOT after one measurement: p90", _quantile(after, 0.9), absolute=30, unit="%", note=few),
        shown("TPOT after one measurement, the doubtful too: median", median(all_after), unit="%"),
        shown("TPOT after one measurement, the doubtful too: p90", _quantile(all_after, 0.9), unit="%"),
        _coverage("TPOT untuned", [covered(row) for row in asked]),
        _coverage("TPOT after one measurement", [covered(row, tuning) for row, tuning in tuned]),
        _coverage("throughput", [covered(row) for row in rows if row.kind == "throughput"]),
        judged(f"greatest throughput, {len(full)} rows: median", median(full), absolute=25, unit="%"),
        shown("greatest throughput: p90", _quantile(full, 0.9), unit="%"),
        shown(f"TTFT, {len(ttft)} rows: median", median(ttft), unit="%"),
        shown("TTFT up to 8 requests: median", median(_errors(_light(rows), ttft_error)), unit="%"),
    )


def _light(rows: Sequence[Published]) -> Sequence[Published]:
    return [row for row in rows if row.concurrency is not None and row.concurrency <= 8]


def _errors(rows: Sequence[Published], error: Callable[[Published], float | None]) -> list[float]:
    return [abs(found) for row in rows if (found := error(row)) is not None]


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[ceil(share * len(values)) - 1]


def _coverage(what: str, held: Sequence[bool | None]) -> Row:
    known = [one for one in held if one is not None]
    share = 100 * sum(known) / len(known)
    return Row(
        f"{what}: the 80 % interval covers", "70-90 %", share, None, "%", 70 <= share <= 90, f"{len(known)} rows"
    )


def spreads() -> Mapping[str, float]:
    """What spread of ln(measured / planned) would cover 80 % of the rows: to look at when a factor is changed."""
    found = {}
    for name, error in (("tpot", tpot_error), ("ttft", ttft_error), ("throughput", throughput_error)):
        off = [abs(log(1 + one / 100)) for row in published() if (one := error(row)) is not None]
        found[name] = _quantile(off, 0.8) / 1.2816
    return found
