"""What a user sees on stderr while a load test goes on: first what will be done, then how it goes.

On a terminal a bar and one line of figures; elsewhere one line every 10 s; nothing with -q. It is told everything by
`update` and measures nothing itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from nilometer.core.finding import Finding
from nilometer.core.spec import Price, Prompts, Spec
from nilometer.text import load as loads
from nilometer.text import units
from nilometer.text.i18n import Catalogue
from nilometer.text.width import wrap
from nilometer.wire.dialects import generates

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live as Screen

    from nilometer.experiment.live import Live
    from nilometer.experiment.orders import Foretold

PLAIN_EVERY_S = 10.0


class Progress:
    """The screen of one run, as a context manager; leaving it clears the bar."""

    def __init__(
        self, words: Catalogue, *, quiet: bool = False, stream: TextIO | None = None, interactive: bool | None = None
    ) -> None:
        self._words = words
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet or self._stream is None
        self._interactive = _is_terminal(self._stream) if interactive is None else interactive
        self._screen: Screen | None = None
        self._said: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def probing(self, step: str) -> None:
        """What is being found out about the target before the load: `reach`, `ask`, `lengths`; only on a terminal."""
        if self._interactive and not self._quiet:
            self._draw(self._words.say(f"screen.probe_{step}"))

    def before(
        self,
        spec: Spec,
        *,
        api: str,
        now_wall_s: float,
        amount: Foretold | None = None,
        in_all: Foretold | None = None,
        ahead: Sequence[Finding] = (),
    ) -> None:
        """What will be done: API, load, lengths, phases, when it ends; the `amount` it takes, its whole series too;
        what is known `ahead`."""
        self.close()
        if self._quiet:
            return
        self._tell(plan_line(spec, self._words, api=api, now_wall_s=now_wall_s, amount=amount))
        if in_all is not None:
            self._tell(self._words.say("screen.ahead.in_all", amount=amount_of(in_all, spec.price, self._words)))
        for finding in ahead:
            self._tell(self._words.say(f"finding.{finding.slug}.what", **finding.params))

    def _tell(self, text: str) -> None:
        self._print("\n".join(wrap(text, self._width())) if self._interactive else text)

    def update(self, live: Live) -> None:
        """Show how it stands; off a terminal only every 10 s and at each new phase."""
        if self._quiet:
            return
        if self._interactive:
            self._draw(_drawing(live, self._words))
        elif self._said is None or live.phase != self._said.phase or _since(self._said, live) >= PLAIN_EVERY_S:
            self._said = live
            told = (head_line(live, self._words), figures_line(live, self._words), state_line(live, self._words))
            self._print("  ".join(text for text in told if text))

    def close(self) -> None:
        """Take the bar away; may be called twice."""
        if self._screen is not None:
            self._screen.stop()
            self._screen = None

    def _print(self, text: str) -> None:
        try:
            print(text, file=self._stream, flush=True)
        except (OSError, ValueError):
            self._quiet = True  # nobody reads it any more; the run goes on

    def _width(self) -> int:
        from shutil import get_terminal_size

        return get_terminal_size().columns

    def _draw(self, what: RenderableType) -> None:
        if self._screen is None:
            from rich.console import Console
            from rich.live import Live as Screen

            console = Console(file=self._stream, force_terminal=True, highlight=False)
            self._screen = Screen(console=console, auto_refresh=False, transient=True)
            self._screen.start()
        self._screen.update(what, refresh=True)


def plan_line(spec: Spec, words: Catalogue, *, api: str, now_wall_s: float, amount: Foretold | None) -> str:
    """`chat · closed loop, 16 in flight · 512 in / 128 out · warm-up 60 s, then 180 s · ends 14:32:10 · ...`."""
    load, prompts = spec.load, spec.prompts
    parts = [
        api,
        loads.kind(spec, words),
        _asked(prompts, words, generated=generates(spec.api)),
    ]
    if load.requests is not None:
        parts.append(words.say("screen.ahead.count", warmup=load.warmup_s, n=load.requests))
    else:
        parts.append(words.say("screen.ahead.phases", warmup=load.warmup_s, measured=load.duration_s))
        end = datetime.fromtimestamp(now_wall_s + load.warmup_s + load.duration_s)
        parts.append(words.say("screen.ahead.ends", time=end.strftime("%H:%M:%S")))
    if amount is not None:
        parts.append(amount_of(amount, spec.price, words))
    return " · ".join(parts)


def amount_of(amount: Foretold, price: Price, words: Catalogue) -> str:
    """`about 0.8 M tokens, about 0.31 USD`."""
    told = words.say("screen.ahead.tokens", n=amount.tokens)
    if amount.cost is None:
        return told
    cost = words.say("screen.ahead.cost", cost=amount.cost, currency=price.currency)
    return told + words.say("screen.list_join") + cost


def _asked(prompts: Prompts, words: Catalogue, *, generated: bool) -> str:
    """What is asked: lengths, or the workload by its file's name."""
    if prompts.workload is not None:
        return words.say("screen.ahead.workload", name=Path(prompts.workload).name)
    if prompts.scenarios:
        total = sum(scenario.weight for scenario in prompts.scenarios)
        parts = (f"{scenario.name} {units.percent(scenario.weight / total)}" for scenario in prompts.scenarios)
        return words.say("screen.list_join").join(parts)
    said = "lengths" if generated else "inputs"
    lengths = words.say(f"screen.ahead.{said}", into=prompts.input_tokens, out=prompts.output_tokens)
    return lengths if prompts.one_by_one else lengths + words.say("screen.ahead.turns", turns=prompts.turns)


def head_line(live: Live, words: Catalogue) -> str:
    """`measured  01:12 / 03:00`."""
    phase = words.say(f"screen.phase.{live.phase}")
    if live.total_s is None:
        return f"{phase}  {units.clock(live.elapsed_s)}"
    return f"{phase}  {units.clock(live.elapsed_s)} / {units.clock(live.total_s)}"


def state_line(live: Live, words: Catalogue) -> str:
    """Errors if there are any; in the measured phase since when the window is steady, or that it is not yet."""
    parts = [words.say("screen.live.errors", n=live.errors)] if live.errors else []
    if live.phase == "measured" and live.steady_since_s is None:
        parts.append(words.say("screen.live.unsteady"))
    elif live.phase == "measured":
        parts.append(words.say("screen.live.steady", since=live.steady_since_s))
    return "  ".join(parts)


def figures_line(live: Live, words: Catalogue) -> str:
    """TTFT, TPOT, tokens/s (frames/s where tokens are not known), in flight, n; `-` where nothing came yet."""
    if live.tokens_per_s is not None:
        made = words.say("screen.live.tokens", rate=live.tokens_per_s)
    else:
        made = words.say("screen.live.frames", rate=live.frames_per_s)
    parts = (
        words.say("screen.live.ttft", p50=live.ttft_ms_p50, p95=live.ttft_ms_p95),
        words.say("screen.live.tpot", p50=live.tpot_ms_p50),
        made,
        words.say("screen.live.in_flight", n=live.in_flight),
        f"n {units.count(live.n)}",
    )
    return "  ".join(parts)


def _drawing(live: Live, words: Catalogue) -> RenderableType:
    """Head, bar (none where a count ends the phase) and steadiness on one line, the figures below."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar: RenderableType = ""
    if live.total_s is not None:
        bar = ProgressBar(
            total=live.total_s,
            completed=min(live.elapsed_s, live.total_s),
            complete_style="cyan",
            finished_style="cyan",
        )
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(no_wrap=True)
    row.add_row(head_line(live, words), bar, state_line(live, words))
    return Group(row, Text(figures_line(live, words)))


def _since(said: Live, live: Live) -> float:
    return live.elapsed_s - said.elapsed_s


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
