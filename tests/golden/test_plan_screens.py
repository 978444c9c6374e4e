"""The screens of a plan in both languages; every formula of every known model has its words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.golden.test_screens import hold
from tests.structure.test_locales import KEYS

from nilometer.plan.advice.advise import advise
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.explain import Line, explain
from nilometer.plan.latency.roofline import Lengths, Tuning
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question
from nilometer.report.explain import blocks
from nilometer.report.plan import Beside, plan_document
from nilometer.sources.models import known
from nilometer.text.i18n import LANGUAGES, Catalogue


def question(name: str, device_name: str | None, **changes: object) -> Question:
    shape = known.shape_of_row(known.look_up(name).row)
    asked = {
        "shape": shape,
        "precision": precision_of(shape.dtype),
        "device": None if device_name is None else device(device_name),
        "version": "0.19",
        "lengths": Lengths(7168, 1024),
        "context": 8192,
        "concurrency": 32,
    }
    return Question(**(asked | changes))  # type: ignore[arg-type]


ASKED = {
    "plan_fits": question("llama-3.1-8b", "h100"),
    "plan_too_large": question("llama-3.1-70b", "h100"),
    "plan_too_many": question("llama-3.1-8b", "4090", concurrency=64),
    "plan_model_alone": question("deepseek-v3", None),
    "plan_two_devices": question("gpt-oss-120b", "h200", parallel=Parallel(tensor=2, data=2)),
}


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", ASKED)
def test_a_plan(name: str, lang: str) -> None:
    made = answer(ASKED[name])
    hold(name, plan_document(made, Beside("context", advise(made)), Catalogue(lang)), width=90)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_plan_explained(lang: str) -> None:
    made = answer(ASKED["plan_fits"])
    beside = Beside("context", advise(made), lines=explain(made))
    hold("plan_explained", plan_document(made, beside, Catalogue(lang)), width=90)


ENGINES = ("vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp")


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    """Of all known models under all engines, and of what brings the rarer formulas about."""
    odd = [
        question("llama-3.1-8b", "h100", version="0.21"),
        question("llama-3.1-8b", "h100", settings=Settings(max_seqs=8)),
        question("llama-3.1-8b", "h100", file_bytes=16 << 30),
        question("llama-3.1-8b", "h100", tuning=Tuning(anchors=(1.0,), dates=("2026-12-03",))),
        question("llama-3.1-8b", "h100", key_precision="q8_0", value_precision="q4_0", concurrency=999),
        question("gemma-3-12b", "h100", key_precision="q8_0", value_precision="q4_0"),
        question("gemma-3-12b", "h100", version="0.24"),
        question("llama-3.1-8b", "ddr5", engine="llama.cpp", device=replace(device("ddr5"), memory_bytes=256e9)),
    ]
    spread = {"version": None, "parallel": Parallel(pipeline=2), "concurrency": 8}
    plain = [question(row.name, "mi300x", engine=one, **spread) for row in known.table() for one in ENGINES]
    return [line for asked in (*odd, *plain) for line in explain(answer(asked))]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_formula_has_words(lines: list[Line], lang: str) -> None:
    assert all(blocks([line], Catalogue(lang)) and list(blocks([line], Catalogue(lang))) for line in lines)


def test_all_words_are_of_a_formula_that_comes_up(lines: list[Line]) -> None:
    used = {f"step.{line.section}.{line.slug}" for line in lines}
    aside = ("step.heading.", "step.result.", "step.line.")
    assert {key for key in KEYS if key.startswith("step.") and not key.startswith(aside)} == used
