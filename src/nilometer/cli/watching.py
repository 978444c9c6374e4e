"""`nilo diagnose URL --watch`: a production server by its metrics page alone; no load is sent."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import SpecError, TargetError
from nilometer.core.mask import Mask
from nilometer.core.spec import secrets_of
from nilometer.diagnose.by_page import UNSEEN, by_page
from nilometer.metrics.server_summary import told
from nilometer.metrics.server_watch import Seen, watch
from nilometer.sources.metrics_page import read_url

from .machine import findings_of, head
from .spec_options import headers_given, resolve

if TYPE_CHECKING:
    from nilometer.core.finding import Finding
    from nilometer.text.i18n import Catalogue

    from .session import Session

KEPT_S = 60.0
"""So much of the past a line is about."""
LOOK_S = 1.0


def run_watch(subject: str, session: Session, given: dict[str, Any]) -> int:
    """A line every `--every`, until --for has passed or Ctrl-C; then the whole stretch. Exit 0, or 5 where too little
    was seen."""
    if "://" not in subject:
        raise SpecError("watch_needs_address", subject=subject)
    every_s, for_s = given["every"], given["for_s"]
    seen: list[Seen] = []
    next_s = time.monotonic() + every_s
    try:
        for one in _pages(subject, session, given, for_s):
            seen.append(one)
            if time.monotonic() >= next_s:
                next_s += every_s
                recent = [page for page in seen if page.at_ns > one.at_ns - KEPT_S * NS_PER_S]
                session.tell(_line(_figures(recent), session.words))
    except KeyboardInterrupt:
        pass
    figures = _figures(seen)
    findings = by_page(figures)
    session.emit(
        {**head("watch"), "findings": findings_of(findings), "server": figures, "unseen": list(UNSEEN)},
        lambda: "\n".join(_whole(figures, findings, session.words)),
    )
    return 0 if figures else 5


def _pages(url: str, session: Session, given: dict[str, Any], for_s: float | None) -> Iterator[Seen]:
    """A page a second. The first must be there; of later ones that fail it is said, and the next is asked for."""
    spec = resolve(url, given)
    headers = headers_given(spec, given, os.environ)
    session.mask = Mask(secrets_of(spec, headers))
    end_s = None if for_s is None else time.monotonic() + for_s
    place, failing = url, False
    while end_s is None or time.monotonic() < end_s:
        begun = time.monotonic_ns()
        try:
            found = read_url(place, headers=dict(headers), insecure=spec.http.insecure, proxy=spec.http.proxy)
        except TargetError as fault:
            if place == url:
                raise
            if not failing:
                session.fail(fault)
            failing = True
        else:
            place, failing = found.address or place, False
            yield Seen(begun, time.monotonic_ns(), found.page)
        time.sleep(max(0.0, LOOK_S - (time.monotonic_ns() - begun) / NS_PER_S))


def _figures(seen: list[Seen]) -> dict[str, float]:
    if len(seen) < 2:
        return {}
    watched = watch(seen, seen[0].asked_ns, seen[-1].answered_ns + 1)
    return {} if watched is None else told(watched)


def _line(figures: dict[str, float], words: Catalogue) -> str:
    """What the last minute said."""
    findings = by_page(figures)
    name = words.say(f"cause.{findings[0].slug}.name") if findings else words.say("screen.watch.nothing")
    known = {key: figures.get(key) for key in ("running_mean", "waiting_mean", "kv_usage_max")}
    return words.say("screen.watch.line", at=time.strftime("%H:%M:%S"), what=name, **known)


def _whole(figures: dict[str, float], findings: list[Finding], words: Catalogue) -> Iterator[str]:
    from nilometer.report.findings import figure

    if not figures:
        yield words.say("screen.watch.too_little")
        return
    seconds = figures.get("covered_s")
    if not findings:
        yield words.say("screen.watch.fine", seconds=seconds)
    join = words.say("screen.list_join")
    for one in findings:
        sure = words.say(f"screen.diagnosis.confidence.{one.confidence}")
        yield words.say("screen.watch.found", what=words.say(f"cause.{one.slug}.name"), seconds=seconds, sure=sure)
        yield "  " + join.join(figure(evidence, words) for evidence in one.evidence)
    unseen = join.join(words.say(f"cause.{slug}.name") for slug in UNSEEN)
    yield words.say("screen.watch.unseen", causes=unseen)
