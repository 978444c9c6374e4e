"""Advice on more devices: a split where the model does not fit or a token is too slow, copies for throughput alone."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..answer import Answer
from ..model.parallel import Parallel
from ..question import Question
from .cost import replicas
from .fitting import smallest
from .option import Asked, Figures, Option, advised, better, reached, row_at
from .splits import GUIDE_USERS, kv_heads, machine_devices, machines, split
from .support import flags


def parallel_options(asked: Asked) -> list[Option]:
    """A split or none, copies or none: as the guide has it, one card first."""
    if asked.question.device is None:
        return []
    found = [_fitting(asked) if not asked.plan.fits else _wider(asked), _copies(asked)]
    return [one for one in found if one is not None]


def _fitting(asked: Asked) -> Option | None:
    """The fewest devices that hold it."""
    found = smallest(asked.question, asked.most_devices // asked.question.parallel.data)
    if not found.fits:
        return None
    return _split(asked, found.question.parallel)


def _wider(asked: Asked) -> Option | None:
    """Twice the devices for each copy."""
    own = asked.question.parallel
    each = 2 * own.tensor * own.pipeline
    wanted = split(asked.question, each)
    if wanted is None or each * own.data > asked.most_devices:
        return None
    return _split(asked, wanted)


def _split(asked: Asked, parallel: Parallel) -> Option:
    question = replace(asked.question, parallel=parallel)
    slug = _named(question)
    told: tuple[str, ...] = ()
    if parallel.tensor > 1:
        told += flags(question.engine, "tensor", n=parallel.tensor)
    if parallel.pipeline > 1:
        told += flags(question.engine, "pipeline", n=parallel.pipeline)
    return advised(
        asked,
        slug,
        "parallel",
        question,
        params={
            "devices": parallel.devices,
            "tensor": parallel.tensor,
            "pipeline": parallel.pipeline,
            "machines": machines(question, parallel),
            "link": question.device.link if question.device else None,
        },
        flags=told,
        caution=lambda before, after, plan: split_caution(asked, before, after, plan),
    )


def _named(question: Question) -> str:
    if machines(question, question.parallel) > 1:
        return "several_machines"
    if question.parallel.tensor > 1:
        return "tensor_parallel" if question.parallel.pipeline == 1 else "tensor_and_pipeline"
    return "layer_split"


def split_caution(asked: Asked, before: Figures, after: Figures, plan: Answer) -> Sequence[str]:
    """What may make a split wrong here."""
    question, device = plan.question, plan.question.device
    own, found = question.parallel, []
    if before.fits:
        found.append("one_card_first")
    if own.tensor > 1 and device is not None and device.link_bytes_per_s is None:
        found.append("link_unknown")
    elif own.tensor > 1 and device is not None and (device.link or "").startswith("PCIe"):
        found.append("slow_link")
    if own.tensor > (kv_heads(question.shape) or own.tensor):
        found.append("kv_heads_copied")
    if before.tpot_ms is not None and not better(after.tpot_ms, before.tpot_ms, less=True):
        found.append("no_faster_token")
    if machines(question, own) > 1:
        found += ["network_unknown", "tensor_in_machine"]
        if asked.users is None or asked.users < GUIDE_USERS:
            found.append("guide_users")
    return found


def _copies(asked: Asked) -> Option | None:
    """As many copies as the traffic takes, or twice as many where the load is more than one holds."""
    question = asked.question
    own, each = question.parallel, question.parallel.tensor * question.parallel.pipeline
    wanted = _wanted(asked)
    if wanted is None or wanted <= own.data:
        return None
    changed = replace(question, parallel=replace(own, data=wanted))
    over = wanted * each > machine_devices(question.device)
    return advised(
        asked,
        "data_parallel",
        "parallel",
        changed,
        params={"copies": wanted, "devices": wanted * each},
        flags=flags(question.engine, "data", n=wanted),
        caution=lambda *_: _copies_caution(asked, wanted * each, several=over),
    )


def _copies_caution(asked: Asked, devices: int, *, several: bool) -> Sequence[str]:
    found = ["same_token_time"]
    if devices > asked.most_devices:
        found.append("more_than_allowed")
    if several and (asked.users is None or asked.users < GUIDE_USERS):
        found.append("guide_users")
    return found


def _wanted(asked: Asked) -> int | None:
    row = row_at(asked.plan, asked.question.concurrency)
    if row is None:
        return None
    own = asked.question.parallel
    if asked.rate_per_s is not None or asked.users is not None:
        by_rate = asked.users is None
        found = replicas(
            asked.plan, asked.objectives, rate_per_s=asked.rate_per_s if by_rate else None, users=asked.users
        )
        return None if found is None or found.mid is None else found.mid * own.sharing
    enough, _ = reached(asked.plan, row, asked.objectives)
    needed = row.bound == "capacity" or not enough
    return 2 * own.data if needed and 2 * own.devices <= asked.most_devices else None
