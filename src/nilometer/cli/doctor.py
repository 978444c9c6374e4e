"""`nilo doctor [TARGET]`: one line per check, and under a bad one the exact fix."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from nilometer.core.errors import EngineError

from .session import Session, shared_options
from .spec_options import API, INSECURE, headers_given, resolve
from .values import HEADER, WAIT

if TYPE_CHECKING:
    from nilometer.core.spec import Spec
    from nilometer.experiment.check import Check

Headers = tuple[tuple[str, str], ...]
_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "skipped": "-   "}


@click.command()
@click.argument("target", required=False)
@click.option("--model", help="Model name; asked from the server where it serves one.")
@API
@click.option("--header", "headers", type=HEADER, multiple=True, help="Header K:V; may repeat.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key.")
@click.option("--proxy", metavar="URL", help="HTTP proxy; proxy variables are ignored unless given.")
@INSECURE
@click.option("--patience", type=WAIT, default="5s", show_default=True, help="Longest wait for one answer.")
@shared_options
def command(target: str | None, session: Session, patience: float, **given: Any) -> None:
    """Can this machine measure; and is TARGET fit to be measured: a walk through it, with small requests tried on it.

    TARGET is an address (with or without /v1), `embedded`, an engine spec, or a TOML file, as of `nilo measure`.
    """
    from nilometer.core.mask import Mask
    from nilometer.core.spec import secrets_of
    from nilometer.experiment.doctor_target import refuse_nonsense

    from .machine import head
    from .measuring import refuse_what_is_no_target

    spec = resolve(target, given) if target is not None else None
    headers = headers_given(spec, given, os.environ) if spec is not None else ()
    if spec is not None:
        session.mask = Mask(secrets_of(spec, headers))
        refuse_what_is_no_target(spec.target)
        refuse_nonsense(spec, headers)
    checks = []
    for check in _checks(spec, headers, session, patience):
        checks.append(check)
        if not session.json:
            click.echo("\n".join(_lines(check, session)))
    session.emit(
        {**head("doctor"), "checks": [_machine(check, session) for check in checks]}, lambda: _last(checks, session)
    )
    raise SystemExit(3 if any(check.state == "fail" for check in checks) else 0)


def _checks(spec: Spec | None, headers: Headers, session: Session, patience_s: float) -> Iterator[Check]:
    """This machine first, then the target where there is one; an engine that it names runs only then."""
    from nilometer.experiment.check import Check, failed
    from nilometer.experiment.doctor import CEILING_BESIDE_TARGET_S, examine
    from nilometer.experiment.doctor_target import walk

    from .measuring import reached

    if spec is None:
        yield from examine()
        yield Check(slug="target", state="skipped")
        return
    yield from examine(CEILING_BESIDE_TARGET_S)
    try:
        _refuse_unprepared(spec.target)
        with reached(spec, headers, session) as found:
            if found.behind is not None:
                name = found.behind.engine.name
                yield Check(slug="engine", state="ok", value=name, params={"engine": name})
            address = found.behind.url if found.behind else spec.target
            yield from walk(spec, found.headers, address, os.environ, patience_s)
    except EngineError as fault:
        yield failed("engine", fault)


def _refuse_unprepared(target: str) -> None:
    """The doctor fetches no model: slug `engine_unprepared` where the engine needs one that is not here."""
    from nilometer.engines import embedded

    if embedded.names_engine(target) and not embedded.is_prepared(target):
        raise EngineError("engine_unprepared")


def _lines(check: Check, session: Session) -> list[str]:
    lines = [f"{_MARKS[check.state]}  {_said(check, session)}"]
    fix = _fix(check, session)
    if fix is not None:
        lines.append(f"      {session.words.say('screen.step', step=fix)}")
    return lines


def _said(check: Check, session: Session) -> str:
    if check.said == "unasked":
        return session.words.say("screen.doctor.unasked", check=session.words.say(f"screen.doctor.{check.slug}.name"))
    return session.words.say(_key(check, "what", check.said or check.state), **check.params)


def _fix(check: Check, session: Session) -> str | None:
    """What to do about a check that is not well; None for one that is."""
    if check.state in ("ok", "skipped"):
        return None
    return session.words.say(_key(check, "next", "fix"), **check.params)


def _key(check: Check, part: str, own_part: str) -> str:
    """Where a check's sentence stands: with the error or the finding it met, else with the doctor's own."""
    if check.error is not None:
        return f"error.{check.error}.{part}"
    if check.finding is not None:
        return f"finding.{check.finding}.{part}"
    return f"screen.doctor.{check.slug}.{own_part}"


def _machine(check: Check, session: Session) -> dict[str, object]:
    return {"slug": check.slug, "state": check.state, "value": check.value, "fix": _fix(check, session)}


def _last(checks: list[Check], session: Session) -> str:
    worst = next((state for state in ("fail", "warn") if any(c.state == state for c in checks)), "ok")
    return session.words.say(f"screen.doctor.verdict.{worst}")
