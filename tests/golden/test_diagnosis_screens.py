"""Services of the step machine in, the screens of their diagnosis out; kept and reviewed as the other screens are."""

from __future__ import annotations

import msgspec
import pytest
from tests.golden.services import SERVICES
from tests.golden.test_screens import hold
from tests.unit.diagnose.played import case_of_machine

from nilometer.core.finding import Experiment
from nilometer.diagnose.diagnosis import Diagnosis, diagnose
from nilometer.report.diagnosis import diagnosis_document
from nilometer.report.terminal import render
from nilometer.text.i18n import LANGUAGES, Catalogue

MOST_LINES = 40


@pytest.fixture(scope="module")
def found() -> dict[str, Diagnosis]:
    return {name: diagnose(case_of_machine(setting, faults).group) for name, (setting, faults) in SERVICES.items()}


@pytest.mark.parametrize("name", SERVICES)
def test_the_answer_is_what_the_service_was_made_with(found: dict[str, Diagnosis], name: str) -> None:
    told = found[name]
    assert (told.findings[0].slug if told.findings else told.state) == name


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", SERVICES)
def test_the_screen_of_a_diagnosis(found: dict[str, Diagnosis], name: str, lang: str) -> None:
    words = Catalogue(lang)
    document = diagnosis_document(found[name], words, subject="k3v9c2mq7x1d", ref="k3v9")
    hold(f"diagnosis_{name}", document)
    assert len(render(document, 80).splitlines()) <= MOST_LINES


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_finding_that_an_experiment_would_settle_names_it(found: dict[str, Diagnosis], lang: str) -> None:
    queue = found["queue"]
    trial = Experiment(
        command="nilo diagnose k3v9 --experiment",
        predictions=["half_lengths.plateau_stays:queue", "half_lengths.plateau_grows:kv_capacity"],
    )
    first = msgspec.structs.replace(queue.findings[0], experiment=trial, rivals=["kv_capacity"])
    told = msgspec.structs.replace(queue, findings=[first])
    hold("diagnosis_experiment", diagnosis_document(told, Catalogue(lang), subject="k3v9c2mq7x1d", ref="k3v9"))
