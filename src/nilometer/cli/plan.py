"""`nilo plan MODEL`: what a model needs, what a device holds of it, and how fast that will be."""

from __future__ import annotations

from typing import Any

import click

from .plan_options import plan_options
from .session import Session, shared_options


@click.command()
@click.argument("model", metavar="[MODEL]", required=False)
@plan_options
@shared_options
def command(model: str | None, session: Session, explain: bool, advice: bool, **given: Any) -> None:
    """KV memory, greatest concurrency and latency of MODEL on a device, each figure with an 80 % interval.

    MODEL is a known name (llama-3.1-8b), a config.json or the folder it lies in, a .gguf or .safetensors file, or the
    address of a running server. Without --device only what the model itself needs is told. Exit 0: it fits; 1: it does
    not, or an SLO is missed.
    """
    from nilometer.plan.advice.advise import advise
    from nilometer.plan.answer import answer
    from nilometer.plan.explain import explain as explained
    from nilometer.report.plan import Beside, plan_document

    from .plan_audit import audited, launched
    from .plan_machine import plan_object
    from .plan_wishes import wished
    from .planning import asked, calibrated

    wishes, told = wished(given)
    launch = launched(given)
    found = asked(model, given, launch)
    if given["calibrate"]:
        found = calibrated(found, given["calibrate"], session.archive_url)
    plan = answer(found.question)
    advised = advise(plan, wishes)
    lines = explained(plan) if explain else ()
    traps = None if launch is None else audited(found, launch, given)
    beside = Beside(found.lengths_from, advised, lines, (*found.notes, *told), advice, traps)
    session.emit(
        {**plan_object(found, plan, beside), **({"explain": lines} if explain else {})},
        lambda: session.render(plan_document(plan, beside, session.words)),
    )
    raise SystemExit(1 if plan.fits is False or advised.missed else 0)
