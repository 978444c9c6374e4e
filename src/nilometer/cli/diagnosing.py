"""What `nilo diagnose` does with its options: find or measure the levels, look at them, show, choose the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nilometer.core.errors import SpecError

from .diagnosis_machine import diagnosis_object
from .levels import Levels, levels_of, load_of
from .session import Session

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.diagnose.diagnosis import Diagnosis
    from nilometer.text.i18n import Catalogue

EXIT_CODES = {"found": 0, "healthy": 0, "vetoed": 4, "undecided": 5}


def run_diagnose(subject: str, session: Session, given: dict[str, Any]) -> int:
    """Returns the exit code of the contract."""
    if is_target(subject):
        from .ladder import measured

        return measured(subject, session, given, shown)
    from nilometer.archive.store import open_archive
    from nilometer.diagnose.diagnosis import diagnose_runs

    with open_archive(session.archive_url, must_exist=True) as archive:
        levels = levels_of(archive, subject)
        found = diagnose_runs(levels.runs, archive.records)
        if given["experiment"]:
            found = _tried(found, levels, archive, session, given)
    return shown(found, levels, session)


def _tried(found: Diagnosis, levels: Levels, archive: Archive, session: Session, given: dict[str, Any]) -> Diagnosis:
    """After its trial, on the archived run's target. Slug `experiment_no_target` of a run that was not measured."""
    from .measuring import found_target, interrupts
    from .trialing import tried

    run = levels.runs[-1]
    if run.origin != "measured":
        raise SpecError("experiment_no_target", run=run.id)
    asked = {**given, "like": run.id}
    with found_target(None, session, asked, archive) as at, interrupts() as stop:
        return tried(found, msgspec.structs.replace(run, spec=at.spec), at, archive, stop, session)


def is_target(subject: str) -> bool:
    """Whether the word is something to be measured, and not something in the archive."""
    from nilometer.engines.embedded import names_engine

    return "://" in subject or names_engine(subject) or (subject.endswith(".toml") and Path(subject).is_file())


def shown(found: Diagnosis, levels: Levels, session: Session) -> int:
    """The diagnosis on stdout; its exit code."""
    from nilometer.report.diagnosis import diagnosis_document

    from .trialing import foretold

    if levels.ref is not None and levels.runs[-1].origin == "measured":
        found = foretold(found, levels.runs[-1].spec, f"nilo diagnose {levels.ref} --experiment")
    session.emit(
        diagnosis_object(found, levels.runs, levels.group),
        lambda: session.render(
            diagnosis_document(found, session.words, subject=_subject(levels, session.words), ref=levels.ref)
        ),
        archived=[run.id for run in levels.runs] if levels.ref else (),
    )
    return EXIT_CODES[found.state]


def _subject(levels: Levels, words: Catalogue) -> str:
    loads = ", ".join(f"{load_of(run):g}" for run in levels.runs)
    name = levels.group or (levels.runs[0].id if levels.runs else "-")
    return words.say("screen.diagnosis.subject", name=name, loads=loads)
