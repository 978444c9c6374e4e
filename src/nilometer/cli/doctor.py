"""`nilo doctor [TARGET]`: one line per check, and under a bad one the exact fix."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from .session import Session, shared_options
from .spec_options import API, INSECURE, headers_given, resolve
from .values import HEADER

if TYPE_CHECKING:
    from nilometer.experiment.doctor import Check

_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "skipped": "-   "}


@click.command()
@click.argument("target", required=False)
@click.option("--model", help="Model name; asked from the server where it serves one.")
@API
@click.option("--header", "headers", type=HEADER, multiple=True, help="Header K:V; may repeat.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key.")
@click.option("--proxy", metavar="URL", help="HTTP proxy; proxy variables are ignored unless given.")
@INSECURE
@shared_options
def command(target: str | None, session: Session, **given: Any) -> None:
    """Can this machine measure; and does TARGET answer as a model server, with a real request tried on it."""
    from nilometer.core.mask import Mask
    from nilometer.core.spec import secrets_of
    from nilometer.experiment.doctor import examine

    from .machine import head

    spec = resolve(target, given) if target is not None else None
    headers = headers_given(spec, given, os.environ) if spec is not None else ()
    session.mask = Mask(secrets_of(spec, headers)) if spec is not None else session.mask
    checks = []
    for check in examine(target, spec, headers):
        checks.append(check)
        if not session.json:
            click.echo("\n".join(_lines(check, session)))
    session.emit(
        {**head("doctor"), "checks": [_machine(check, session) for check in checks]}, lambda: _last(checks, session)
    )
    raise SystemExit(3 if any(check.state == "fail" for check in checks) else 0)


def _lines(check: Check, session: Session) -> list[str]:
    lines = [f"{_MARKS[check.state]}  {_said(check, session)}"]
    fix = _fix(check, session)
    if fix is not None:
        lines.append(f"      {session.words.say('screen.step', step=fix)}")
    return lines


def _said(check: Check, session: Session) -> str:
    return session.words.say(_key(check, session, "what", check.state), **check.params)


def _fix(check: Check, session: Session) -> str | None:
    """What to do about a check that is not well; None for one that is."""
    if check.state in ("ok", "skipped"):
        return None
    return session.words.say(_key(check, session, "next", "fix"), **check.params)


def _key(check: Check, session: Session, part: str, own_part: str) -> str:
    """Where a check's sentence stands: with the error it met, with the finding it is, else with the doctor's own."""
    if "error" in check.params:
        return f"error.{check.params['error']}.{part}"
    finding = f"finding.{check.slug}.{part}"
    return finding if finding in session.words else f"screen.doctor.{check.slug}.{own_part}"


def _machine(check: Check, session: Session) -> dict[str, object]:
    return {"slug": check.slug, "state": check.state, "value": check.value, "fix": _fix(check, session)}


def _last(checks: list[Check], session: Session) -> str:
    worst = next((state for state in ("fail", "warn") if any(c.state == state for c in checks)), "ok")
    return session.words.say(f"screen.doctor.verdict.{worst}")
