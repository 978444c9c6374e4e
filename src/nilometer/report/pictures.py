"""The words of each chart: title, how to read it, axes, what its marks mean, and the same in figures as a table.

A chart that cannot be drawn says why in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nilometer.core.run import Run
from nilometer.core.summary import Distribution
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from . import chart_tables
from .charts import Drawn, Plot
from .document import Axis, Block, Chart, Charts, Key, Table, Text
from .gather import Gathered
from .lead import sentence
from .looks import place
from .table import MARK


class Pictures:
    """The charts of some runs in one language. `names` tell the runs apart; of a single run none is shown."""

    def __init__(
        self, runs: Sequence[Run], seen: Sequence[Gathered], names: Sequence[str], drawn: Drawn, words: Catalogue
    ) -> None:
        self._runs = runs
        self._seen = seen
        self._names = names
        self._drawn = drawn
        self._words = words

    def blocks(self) -> Iterator[Block]:
        """All charts in the order of reading: over time, then against length, then as distributions."""
        words = self._words
        if not self._with_records():
            yield Text(text=words.say("screen.chart.no_records"))
            yield from self._seconds()
            return
        yield Charts(rows=[self._latency(i, "ttft") for i in range(len(self._runs))])
        yield Charts(rows=[self._latency(i, "e2e") for i in range(len(self._runs))])
        yield from self._seconds()
        yield Charts(rows=[self._by_length(i) for i in range(len(self._runs))])
        whole = "spread_ttft" not in self._drawn.plots
        yield Charts(rows=[self._spread(name) for name in (("e2e",) if whole else ("ttft", "tpot"))])

    def _with_records(self) -> bool:
        return any(len(one.table.outcome) for one in self._seen)

    def _seconds(self) -> Iterator[Charts]:
        """In flight and tokens/s: beside each other of one run, else run beside run."""
        of_runs = range(len(self._runs))
        flights, tokens = [self._flight(i) for i in of_runs], [self._tokens(i) for i in of_runs]
        if len(self._runs) == 1:
            yield Charts(rows=flights + tokens)
        else:
            yield from (Charts(rows=flights), Charts(rows=tokens))

    def _latency(self, i: int, name: str) -> Chart:
        run, words = self._runs[i], self._words
        found = run.summary.latency_ms.get(name, Distribution())
        caption = words.say(
            "screen.chart.latency.caption",
            n=found.n,
            p50=units.latency(found.p50) + _mark(found, "p50"),
            p95=units.latency(found.p95) + _mark(found, "p95"),
        )
        return self._chart(
            f"{name}-{i}",
            title=self._titled(words.say("screen.chart.latency.title", metric=words.say(f"metric.{name}")), i),
            caption=caption,
            absent=f"screen.chart.no_{name}" if len(self._seen[i].table.outcome) else "screen.chart.none",
            axes=(self._time(), Axis(words.say(f"short.{name}"), self._drawn.scales[name].symbol)),
            table=lambda: chart_tables.over_time(run, self._seen[i].table, name, self._drawn.scales[name], words),
        )

    def _flight(self, i: int) -> Chart:
        words = self._words
        return self._chart(
            f"in_flight-{i}",
            title=self._titled(words.say("screen.chart.in_flight.title"), i),
            caption=words.say("screen.chart.in_flight.caption"),
            absent="screen.chart.no_timeline",
            axes=(self._time(), Axis(words.say("short.in_flight"))),
            table=lambda: chart_tables.per_second(self._runs[i], words),
        )

    def _tokens(self, i: int) -> Chart:
        words, rate = self._words, self._runs[i].summary.throughput.output_tokens_per_s
        return self._chart(
            f"tokens-{i}",
            title=self._titled(words.say("screen.chart.tokens.title"), i),
            caption=words.say("screen.chart.tokens.caption", rate=rate),
            absent="screen.chart.no_timeline",
            axes=(self._time(), Axis(words.say("metric.output_tokens_per_s"), words.say("screen.tokens_unit"))),
            table=lambda: chart_tables.per_second(self._runs[i], words),
        )

    def _by_length(self, i: int) -> Chart:
        words, run, table = self._words, self._runs[i], self._seen[i].table
        return self._chart(
            f"length-{i}",
            title=self._titled(words.say("screen.chart.length.title"), i),
            caption=words.say("screen.chart.length.caption"),
            absent="screen.chart.one_length" if len(table.outcome) else "screen.chart.none",
            axes=(
                Axis(words.say("screen.chart.length.x"), words.say("screen.waterfall.tokens")),
                Axis(words.say("short.ttft"), self._drawn.scales["ttft"].symbol),
            ),
            table=lambda: chart_tables.by_length(run, table, self._drawn.scales["ttft"], words),
        )

    def _spread(self, name: str) -> Chart:
        words, scale = self._words, self._drawn.scales[name]
        plot = self._drawn.plots.get(f"spread_{name}")
        slowest = max((run.summary.latency_ms.get(name, Distribution()).max or 0.0 for run in self._runs), default=0.0)
        caption = words.say("screen.chart.spread.caption")
        if plot is not None and plot.shown < plot.total:
            caption += words.say("screen.chart.spread.beyond", slowest=slowest)
        pairs = [(run, one.table) for run, one in zip(self._runs, self._seen, strict=True)]
        return self._chart(
            f"spread_{name}",
            title=sentence(words.say("screen.chart.spread.title", metric=words.say(f"metric.{name}"))),
            caption=caption,
            absent="screen.chart.no_such",
            axes=(Axis(words.say(f"short.{name}"), scale.symbol), Axis(words.say("screen.chart.spread.y"), "%")),
            table=lambda: chart_tables.spread(pairs, self._names, name, scale, words),
        )

    def _chart(
        self,
        name: str,
        *,
        title: str,
        caption: str,
        absent: str,
        axes: tuple[Axis, Axis],
        table: Callable[[], Table],
    ) -> Chart:
        plot = self._drawn.plots.get(name)
        if plot is None:
            return Chart(title=title, caption=self._words.say(absent))
        if plot.shown < plot.total and not name.startswith("spread"):
            caption += self._words.say("screen.chart.thinned", shown=plot.shown, total=plot.total)
        x, y = axes
        return Chart(title=title, caption=caption, plot=name, x=x, y=y, keys=list(self._keys(plot)), table=table())

    def _keys(self, plot: Plot) -> Iterator[Key]:
        """Each look once; a run by its name."""
        looks = {one.look for part in (plot.series, plot.levels, plot.bands) for one in part}
        for look in sorted(looks, key=place):
            number = look.removeprefix("run")
            if number == look:
                yield Key(look, self._words.say(f"screen.look.{look}"))
            elif len(self._runs) > 1:
                yield Key(look, self._names[int(number)])

    def _titled(self, title: str, i: int) -> str:
        title = sentence(title)
        if len(self._runs) == 1:
            return title
        return self._words.say("screen.chart.of_run", title=title, run=self._names[i])

    def _time(self) -> Axis:
        return Axis(self._words.say("screen.chart.time"), "s")


def _mark(found: Distribution, percentile: str) -> str:
    return MARK if percentile in found.marked else ""
