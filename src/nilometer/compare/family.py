"""THE table of what is compared: which figures of a Summary, which way is better, how much of a change matters.

The primary family is fixed before the runs: its members are judged, the others are only shown. Whoever picks the
figure after the runs has picked the luckiest one.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from nilometer.core.errors import SpecError
from nilometer.core.summary import Summary
from nilometer.metrics.catalogue import BY_NAME, Better


class Judged(NamedTuple):
    """One figure: a metric of the catalogue and, of a latency, its statistic. `margin` is a share: 0.05 is 5 %.

    A change within the margin does not matter, in either direction: from 1 / (1 + margin) to 1 + margin, so that A
    against B and B against A end in the same verdict, mirrored.
    """

    metric: str
    stat: str | None
    margin: float
    primary: bool = False

    @property
    def name(self) -> str:
        """As the bounds of an SLO write it: `ttft_p95`, `output_tokens_per_s`."""
        return self.metric if self.stat is None else f"{self.metric}_{self.stat}"

    @property
    def better(self) -> Better:
        return BY_NAME[self.metric].better or "lower"

    @property
    def log_margin(self) -> float:
        return math.log1p(self.margin)

    def of(self, summary: Summary) -> float | None:
        """The figure of one run in the Summary's unit; None where it was not measured."""
        if self.stat is None:
            rate: float | None = getattr(summary.throughput, self.metric)
            return rate
        distribution = summary.latency_ms.get(self.metric)
        value: float | None = None if distribution is None else getattr(distribution, self.stat)
        return value


Family = tuple[Judged, ...]

TABLE: Family = (
    Judged("ttft", "p95", 0.10, primary=True),
    Judged("tpot", "p50", 0.05, primary=True),
    Judged("output_tokens_per_s", None, 0.05, primary=True),
    Judged("ttft", "p50", 0.10),
    Judged("tpot", "p95", 0.10),
    Judged("e2e", "p50", 0.05),
    Judged("e2e", "p95", 0.10),
    Judged("requests_per_s", None, 0.05),
    Judged("goodput_requests_per_s", None, 0.05),
)
"""In the order they are shown. Tails and first tokens have the wider margin: they vary the most from run to run (p95 of
TTFT by 5-7 % with 180 s a run, in simulation), so that no affordable number of runs would decide a narrow one."""

_MOST_MARGIN = 1.0
_PIECE = re.compile(r"([a-z0-9_]+)\s*(?:=\s*(\d+(?:\.\d+)?)\s*(%|))?")


def parse(text: str) -> Family:
    """The family that `tpot_p50=3%,output_tokens_per_s` names: these are judged, in place of the default ones.

    A figure without a margin has that of the table; the rest of the table follows, to be shown. Slug `family_invalid`
    with the piece that is no figure of the table, no margin above 0 and up to 100 %, or named twice.
    """
    asked: dict[str, Judged] = {}
    for piece in text.split(","):
        row = _row(piece.strip())
        if row.name in asked:
            raise SpecError("family_invalid", piece=piece.strip(), names=_names())
        asked[row.name] = row
    shown = (row._replace(primary=False) for row in TABLE if row.name not in asked)
    return (*asked.values(), *shown)


def _row(piece: str) -> Judged:
    parts = _PIECE.fullmatch(piece)
    known = {row.name: row for row in TABLE}
    if parts is None or parts[1] not in known:
        raise SpecError("family_invalid", piece=piece, names=_names())
    row = known[parts[1]]._replace(primary=True)
    if parts[2] is None:
        return row
    margin = float(parts[2]) * (0.01 if parts[3] else 1.0)
    if not 0 < margin <= _MOST_MARGIN:
        raise SpecError("family_invalid", piece=piece, names=_names())
    return row._replace(margin=margin)


def _names() -> str:
    return ", ".join(row.name for row in TABLE)
