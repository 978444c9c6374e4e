"""The table of labs: what the command offers is there, with two sides that differ in one thing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run

from nilometer.cli import lab as command
from nilometer.core.spec import to_tree
from nilometer.core.summary import Distribution
from nilometer.experiment.contest import LESSONS
from nilometer.experiment.lab import LABS, spec_of
from nilometer.report.lab import lab_document
from nilometer.report.terminal import render
from nilometer.text.i18n import Catalogue
from nilometer.workload import lengths


def test_the_command_offers_what_there_is() -> None:
    assert set(command.NAMES) == {*LABS, *LESSONS}


@pytest.mark.parametrize("name", LABS)
def test_the_sides_of_a_lab_differ_in_their_prompts_alone(name: str) -> None:
    one, other = (to_tree(spec_of(prompts)) for prompts in LABS[name].sides.values())
    assert one.pop("prompts") != other.pop("prompts")
    assert one == other


def test_the_mix_has_the_median_of_the_short_side_and_fits_its_context() -> None:
    lab = LABS["length-mix"]
    short, mix = lab.sides["short"], lab.sides["mix"]
    assert mix.input_tokens.startswith(f"lognormal:{short.input_tokens},")
    longest = sum(lengths.parse(text).bounds()[1] for text in (mix.input_tokens, mix.output_tokens))
    assert longest < lab.context_tokens


@pytest.mark.parametrize(
    ("lang", "told"), [("en", "first token in 1.03 s (p95)"), ("zh", "首 token 时延 p95 为 1.03 s")]
)
def test_both_sides_are_shown_and_how_far_they_are_apart(lang: str, told: str) -> None:
    def side(name: str, p95: float) -> object:
        run = make_run(f"{name}aaaaaaaa", role=f"length-mix/{name}")
        latency = {**run.summary.latency_ms, "ttft": Distribution(n=80, p50=p95 / 2, p95=p95)}
        return replace(run, summary=replace(run.summary, latency_ms=latency))

    words = Catalogue(lang)
    shown = render(lab_document([side("short", 1030.0), side("mix", 3840.0)], "gggggggggggg", words))  # type: ignore[list-item]
    said = " ".join(shown.split())
    assert told in said
    assert "3.7" in said
    assert words.say("screen.lab.mix") in said
