"""What `nilo verify` does with its options: reach both sides, measure pair after pair, show the verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from nilometer.compare.condition import Change, parse_changes, require_alike_asked
from nilometer.compare.noise import noises
from nilometer.compare.verdict import Comparison
from nilometer.core.group import Group, with_plan
from nilometer.core.mask import Mask
from nilometer.core.run import new_id
from nilometer.core.spec import Spec, secrets_of, to_toml, without_secrets
from nilometer.experiment.measure import check
from nilometer.experiment.verify import Pair, Plan, Reached, Role, Side, Verified, verify

from . import comparing
from .comparing import Terms, comparison_object, rule_of
from .measuring import interrupts, like, open_archive_of, reached, refuse_what_is_no_target
from .progress import Progress
from .session import Session
from .spec_options import headers_given, resolve

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.report.document import Document
    from nilometer.report.verify import Ending
    from nilometer.text.i18n import Catalogue

Headers = tuple[tuple[str, str], ...]
_OF_TARGETS: tuple[Change, ...] = ("service", "service-version", "model", "quantisation", "engine", "flags")
"""What two targets may differ in by being two; the load, the prompts and the machine are to be the same."""


def run_verify(a: str, b: str, session: Session, given: dict[str, Any]) -> int:
    """Measure and judge; returns the exit code of the contract."""
    rule = rule_of(given["metrics"], given["pairs"])
    with ExitStack() as stack:
        archive = None if given["no_archive"] else stack.enter_context(open_archive_of(session))
        sides = _sides(a, b, session, given, archive)
        terms = Terms(rule, _declared(sides, given["changes"]))
        require_alike_asked(sides["a"].spec, sides["b"].spec, terms.declared)
        group = _group(sides["a"].spec, terms, given)
        stop = stack.enter_context(interrupts())
        verified = verify(
            sides,
            Plan(given["pairs"], given["budget"]),
            group,
            decided=lambda pairs: decided(pairs, terms, session),
            runs=archive,
            watch=stack.enter_context(Progress(session.words, quiet=session.quiet)),
            stop=stop,
            random=Random(),  # noqa: S311 - names, not secrets
        )
    comparison = _show(verified, terms, group, session, archived=archive is not None)
    return exit_code(comparison, verified, session)


def _declared(sides: Mapping[Role, Side], changes: Sequence[str]) -> frozenset[str]:
    """What may differ: whatever two targets are named for, and what the user adds; nothing of one named twice."""
    said = frozenset(word for text in changes for word in parse_changes(text))
    return said if sides["a"].spec.target == sides["b"].spec.target else said | frozenset(_OF_TARGETS)


def decided(pairs: Sequence[Pair], terms: Terms, session: Session) -> bool:
    """Looks after each pair, and says what it sees. Slugs `conditions_differ`, `definitions_differ`."""
    comparison, _ = terms.judge(pairs)
    verdict = session.words.say(f"screen.comparison.{comparison.verdict}")
    session.progress("verify.so_far", n=len(pairs), verdict=verdict)
    return comparison.verdict != "UNDECIDED"


def _sides(a: str, b: str, session: Session, given: dict[str, Any], archive: Archive | None) -> dict[Role, Side]:
    """Both sides, looked at before anything is started."""
    base = like(given["like"], session, archive) if given["like"] else None
    specs: dict[Role, Spec] = {"a": resolve(a, given, base), "b": resolve(b, given, base)}
    headers: dict[Role, Headers] = {role: headers_given(spec, given, os.environ) for role, spec in specs.items()}
    session.mask = Mask(tuple({*secrets_of(specs["a"], headers["a"]), *secrets_of(specs["b"], headers["b"])}))
    for spec in specs.values():
        refuse_what_is_no_target(spec.target)
        check(spec)
    return {role: Side(spec, partial(_reached, spec, headers[role], session)) for role, spec in specs.items()}


@contextmanager
def _reached(spec: Spec, headers: Headers, session: Session) -> Iterator[Reached]:
    with reached(spec, headers, session) as found:
        yield Reached(found.headers, found.behind)


def _group(spec: Spec, terms: Terms, given: dict[str, Any]) -> Group:
    plan: dict[str, Any] = {"pairs": given["pairs"], "changes": sorted(terms.declared)}
    if given["metrics"] is not None:
        plan["metrics"] = given["metrics"]
    return Group(
        id=new_id(Random()),  # noqa: S311 - a name
        type="verify",
        started_wall_ns=time.time_ns(),
        spec=with_plan(to_toml(without_secrets(spec)), "verify", plan),
    )


def ended(verified: Verified) -> Ending | None:
    """What ended it before it was decided."""
    if verified.series.cut:
        return "cut"
    return "lost" if verified.series.fault is not None else verified.short


def _show(verified: Verified, terms: Terms, group: Group, session: Session, *, archived: bool) -> Comparison:
    """The result on stdout."""
    comparison, _ = terms.judge(verified.pairs)
    runs = verified.series.runs
    session.emit(
        machine_of(verified, terms, group),
        lambda: session.render(document_of(verified, terms, group, session.words, archived=archived)),
        archived=[run.id for run in runs] if archived else (),
    )
    return comparison


def machine_of(verified: Verified, terms: Terms, group: Group) -> dict[str, object]:
    """The machine form of a verify: the comparison, its group, and the noise of the machine."""
    from nilometer.report.verify import sides_of

    comparison, found = terms.judge(verified.pairs)
    sides = sides_of(comparison, verified.series.runs)
    told = [one._asdict() for one in noises(terms.rule, *sides)]
    return comparison_object(comparison, terms.rule.family, sides, found, group=group.id, noise=told)


def document_of(verified: Verified, terms: Terms, group: Group, words: Catalogue, *, archived: bool = True) -> Document:
    """The screen of a verify."""
    from nilometer.report.verify import verify_document

    comparison, found = terms.judge(verified.pairs)
    runs = verified.series.runs
    return verify_document(
        comparison, terms.rule, runs, group.id, words, differences=found, archived=archived, ended=ended(verified)
    )


def exit_code(comparison: Comparison, verified: Verified, session: Session) -> int:
    """The first that applies of 130, 3, 4, 5, 1, 0."""
    if verified.series.cut:
        return 130
    if verified.series.fault is not None:
        session.fail(verified.series.fault)
        return verified.series.fault.exit_code
    return 4 if verified.short == "unfit" else comparing.exit_code(comparison)
