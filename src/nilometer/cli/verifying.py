"""What `nilo verify` does with its options: reach both sides, measure pair after pair, show the verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from nilometer.compare.condition import Change, differences, parse_changes, require_alike
from nilometer.compare.noise import noise
from nilometer.compare.verdict import Comparison, Rule, judge
from nilometer.core.group import Group, with_plan
from nilometer.core.mask import Mask
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Spec, secrets_of, to_toml, without_secrets
from nilometer.experiment.measure import check
from nilometer.experiment.verify import Pair, Plan, Reached, Role, Side, Verified, verify

from . import comparing
from .comparing import comparison_object, rule_of
from .measuring import interrupts, like, open_archive_of, reached, refuse_what_is_no_target
from .progress import Progress
from .session import Session
from .spec_options import headers_given, resolve

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.report.verify import Ending

Headers = tuple[tuple[str, str], ...]
_OF_TARGETS: tuple[Change, ...] = ("service", "service-version", "model", "quantisation", "engine", "flags")
"""What two targets may differ in by being two; the load, the prompts and the machine are to be the same."""


def run_verify(a: str, b: str, session: Session, given: dict[str, Any]) -> int:
    """Measure and judge; returns the exit code of the contract."""
    rule = rule_of(given["metrics"], given["pairs"])
    with ExitStack() as stack:
        archive = None if given["no_archive"] else stack.enter_context(open_archive_of(session))
        sides = _sides(a, b, session, given, archive)
        group = _group(sides["a"].spec, given)
        declared = _declared(sides, given["changes"])
        stop = stack.enter_context(interrupts())
        verified = verify(
            sides,
            Plan(given["pairs"], given["budget"]),
            group,
            decided=lambda pairs: alike(pairs, declared) and decided(pairs, rule, session),
            runs=archive,
            watch=stack.enter_context(Progress(session.words, quiet=session.quiet)),
            stop=stop,
            random=Random(),  # noqa: S311 - names, not secrets
        )
    comparison = judged(verified.pairs, rule)
    show(comparison, rule, verified.series.runs, group, session, archived=archive is not None, ended=ended(verified))
    return exit_code(comparison, verified, session)


def judged(pairs: Sequence[Pair], rule: Rule) -> Comparison:
    """The verdict over the pairs that count."""
    return judge([pair.a for pair in pairs], [pair.b for pair in pairs], rule)


def _declared(sides: Mapping[Role, Side], changes: Sequence[str]) -> set[str]:
    """What may differ: whatever two targets are named for, and what the user adds; nothing of one named twice."""
    said = {word for text in changes for word in parse_changes(text)}
    return said if sides["a"].spec.target == sides["b"].spec.target else said | set(_OF_TARGETS)


def alike(pairs: Sequence[Pair], declared: Collection[str]) -> bool:
    """Always: what is not alike and not declared is refused, slug `conditions_differ`."""
    require_alike(differences([pair.a for pair in pairs], [pair.b for pair in pairs]), declared)
    return True


def decided(pairs: Sequence[Pair], rule: Rule, session: Session) -> bool:
    """Looks after each pair, and says what it sees."""
    comparison = judged(pairs, rule)
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


def _group(spec: Spec, given: dict[str, Any]) -> Group:
    plan = {"pairs": given["pairs"], **({} if given["metrics"] is None else {"metrics": given["metrics"]})}
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


def show(
    comparison: Comparison,
    rule: Rule,
    runs: Sequence[Run],
    group: Group,
    session: Session,
    *,
    archived: bool,
    ended: Ending | None = None,
) -> None:
    """The result on stdout."""
    from nilometer.report.verify import sides_of, verify_document

    sides = sides_of(comparison, runs)
    most = rule.looks.most if rule.looks else len(sides[0])
    noises = [noise(row, *sides, most) for row in rule.family if row.primary]
    told = [one._asdict() for one in noises if one is not None]
    session.emit(
        comparison_object(comparison, rule.family, sides, group=group.id, noise=told),
        lambda: session.render(
            verify_document(comparison, rule, runs, group.id, session.words, archived=archived, ended=ended)
        ),
        archived=[run.id for run in runs] if archived else (),
    )


def exit_code(comparison: Comparison, verified: Verified, session: Session) -> int:
    """The first that applies of 130, 3, 4, 5, 1, 0."""
    if verified.series.cut:
        return 130
    if verified.series.fault is not None:
        session.fail(verified.series.fault)
        return verified.series.fault.exit_code
    return 4 if verified.short == "unfit" else comparing.exit_code(comparison)
