"""The screen during a run, drawn into a string."""

from __future__ import annotations

import io
import re
from datetime import datetime

import msgspec
import pytest

from nilometer.cli.progress import Progress, figures_line, head_line, plan_line, state_line
from nilometer.core.spec import Load, Price, Prompts, Spec
from nilometer.experiment.live import Live
from nilometer.experiment.orders import Foretold
from nilometer.text.i18n import Catalogue

EN, ZH = Catalogue("en"), Catalogue("zh")
NOW_S = 1_786_699_613.0
SPEC = Spec(target="http://127.0.0.1:8000", load=Load(concurrency=16))
LIVE = Live(
    phase="measured",
    elapsed_s=72.4,
    total_s=180.0,
    ttft_ms_p50=212.3,
    ttft_ms_p95=480.1,
    tpot_ms_p50=23.1,
    frames_per_s=640.0,
    tokens_per_s=650.2,
    in_flight=16,
    n=366,
    steady_since_s=8.0,
)


def _ends(seconds: float) -> str:
    return datetime.fromtimestamp(NOW_S + seconds).strftime("%H:%M:%S")


def test_before_the_run_one_line_says_what_will_be_done() -> None:
    assert plan_line(SPEC, EN, api="chat", now_wall_s=NOW_S, amount=Foretold(800_000)) == (
        "chat · closed loop, 16 in flight · 512 in / 128 out · warm-up 60 s, then 180 s · "
        f"ends {_ends(240)} · about 0.8 M tokens"
    )
    assert plan_line(SPEC, ZH, api="chat", now_wall_s=NOW_S, amount=Foretold(800_000)) == (
        f"chat · 闭环，在途请求数 16 · 输入 512 / 输出 128 · 预热 60 s，测量 180 s · {_ends(240)} 结束 · 约 0.8 M token"
    )


def test_a_count_has_no_end_and_an_unknown_amount_is_not_foretold() -> None:
    load = Load(rate_per_s=2.5, requests=1, warmup_s=2.5)
    spec = Spec(target="x", load=load, prompts=Prompts(input_tokens="uniform:64,256"))
    assert plan_line(spec, EN, api="completions", now_wall_s=NOW_S, amount=None) == (
        "completions · open loop, 2.5 requests/s (poisson) · uniform:64,256 in / 128 out · "
        "warm-up 2.5 s, then 1 request"
    )


def test_the_cost_is_foretold_and_that_of_all_levels() -> None:
    stream, spec = io.StringIO(), msgspec.structs.replace(SPEC, price=Price(currency="CNY"))
    with Progress(EN, stream=stream) as progress:
        progress.before(
            spec, api="chat", now_wall_s=NOW_S, amount=Foretold(800_000, 0.31), in_all=Foretold(4_000_000, 1.5)
        )
    first, second = stream.getvalue().splitlines()
    assert first.endswith("about 0.8 M tokens, about 0.31 CNY")
    assert second == "all together: about 4.0 M tokens, about 1.50 CNY"


def test_during_the_run_phase_figures_and_state() -> None:
    assert head_line(LIVE, EN) == "measured  01:12 / 03:00"
    assert figures_line(LIVE, EN) == "TTFT p50 212 ms p95 480 ms  TPOT p50 23.1 ms  650 tok/s  16 in flight  n 366"
    assert state_line(LIVE, EN) == "steady since 00:08"


def test_what_is_not_known_yet_is_a_dash_and_frames_stand_for_tokens() -> None:
    live = Live(phase="warmup", elapsed_s=3.0, frames_per_s=40.0, in_flight=4, errors=2)
    assert head_line(live, EN) == "warm-up  00:03"
    assert figures_line(live, EN) == "TTFT p50 - p95 -  TPOT p50 -  40.0 frames/s  4 in flight  n 0"
    assert state_line(live, EN) == "2 errors"


def test_in_the_measured_phase_it_says_so_when_not_yet_steady() -> None:
    live = Live(phase="measured", elapsed_s=3.0, total_s=180.0)
    assert (state_line(live, EN), state_line(live, ZH)) == ("not yet steady", "尚未稳态")


def test_off_a_terminal_a_line_every_10_s_and_at_each_new_phase() -> None:
    stream = io.StringIO()
    with Progress(EN, stream=stream) as progress:
        for phase, seconds in (("warmup", range(0, 26, 5)), ("measured", range(0, 6, 5))):
            for elapsed in seconds:
                live = Live(phase="warmup" if phase == "warmup" else "measured", elapsed_s=elapsed, total_s=60)
                progress.update(live)
    heads = [line[:15] for line in stream.getvalue().splitlines()]
    assert heads == ["warm-up  00:00 ", "warm-up  00:10 ", "warm-up  00:20 ", "measured  00:00"]


def test_off_a_terminal_the_probing_leaves_no_lines_before_an_error() -> None:
    stream = io.StringIO()
    with Progress(EN, stream=stream) as progress:
        for step in ("reach", "ask", "lengths"):
            progress.probing(step)
    assert stream.getvalue() == ""


def test_on_a_terminal_the_probing_gives_way_to_the_plan() -> None:
    stream = io.StringIO()
    with Progress(EN, stream=stream, interactive=True) as progress:
        progress.probing("reach")
        progress.before(SPEC, api="chat", now_wall_s=NOW_S)
    probing, _, plan = stream.getvalue().partition("reaching the target")
    assert probing.strip("\x1b[?25l") == ""
    assert plan.rfind("\x1b[2K") < plan.find("chat · closed loop"), "the line is cleared before the plan is printed"


@pytest.mark.parametrize("interactive", [True, False])
def test_quiet_says_nothing(interactive: bool) -> None:
    stream = io.StringIO()
    with Progress(EN, quiet=True, stream=stream, interactive=interactive) as progress:
        progress.probing("reach")
        progress.before(SPEC, api="chat", now_wall_s=NOW_S, amount=Foretold(1))
        progress.update(LIVE)
    assert stream.getvalue() == ""


def test_on_a_terminal_the_bar_is_drawn_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    with Progress(ZH, stream=stream, interactive=True) as progress:
        progress.before(SPEC, api="chat", now_wall_s=NOW_S, amount=Foretold(800_000))
        progress.update(LIVE)
        drawn = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", stream.getvalue())
        assert "测量  01:12 / 03:00 ━" in drawn
        assert "TTFT p50 212 ms p95 480 ms" in drawn
        assert "00:08 起稳态" in drawn
    assert stream.getvalue().endswith("\x1b[2K"), "the last thing done is to clear the bar's lines"
    progress.close()


def test_a_terminal_that_cannot_draw_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with Progress(EN, stream=stream) as progress:
        progress.update(LIVE)
    assert stream.getvalue() == f"{head_line(LIVE, EN)}  {figures_line(LIVE, EN)}  steady since 00:08\n"


class Broken(io.StringIO):
    """A stream whose reader is gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_is_gone_silences_the_screen_and_not_the_run() -> None:
    with Progress(EN, stream=Broken(), interactive=False) as progress:
        progress.before(SPEC, api="chat", now_wall_s=NOW_S, amount=Foretold(1))
        progress.update(LIVE)
