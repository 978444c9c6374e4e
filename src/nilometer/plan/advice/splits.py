"""How a model may be split over devices: only as its heads divide, one card first, tensor ranks within one machine.

The guide asks for several machines only from ten thousand users on. What is tried here is decided by what fits and
what meets an objective; vLLM's documentation (serving/parallelism_scaling) gives the order: one device, then tensor
ranks in one machine, then pipeline stages over machines.
"""

from __future__ import annotations

from math import gcd

from msgspec.structs import replace

from ..devices import Device
from ..model.parallel import Parallel, undealt_heads
from ..model.shape import Attention, Shape
from ..question import Question

MACHINE = 8
"""Devices of one machine, as the common servers have them."""
_RACKS = {"GB200-NVL72": 72, "GB300": 72}
"""Devices whose fast link spans more."""
GUIDE_USERS = 10_000
"""The guide's threshold for several machines."""


def machine_devices(device: Device | None) -> int:
    """How many devices share the fast link."""
    return MACHINE if device is None else _RACKS.get(device.name, MACHINE)


def kv_heads(shape: Shape) -> int | None:
    """KV heads that ranks can share out before they copy; None where none are cached by the head."""
    found = [block.mixer.kv_heads for block in shape.kinds if isinstance(block.mixer, Attention)]
    return min(found) if found else None


def split(question: Question, devices: int) -> Parallel | None:
    """A copy on so many devices: as many tensor ranks as divide the heads and share a machine, the rest as stages.

    llama.cpp splits by layers. None where that comes to no whole number, or to more stages than layers.
    """
    own = question.parallel
    if question.engine == "llama.cpp":
        tensor = 1
    else:
        room = min(devices, machine_devices(question.device))
        whole = (n for n in range(room, 0, -1) if devices % n == 0)
        tensor = next(n for n in whole if undealt_heads(question.shape, n) is None)
    stages = devices // tensor
    if stages > question.shape.layers:
        return None
    return replace(own, tensor=tensor, pipeline=stages, expert=gcd(own.expert, tensor))


def sizes(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to `most`."""
    return tuple(1 << power for power in range(most.bit_length()) if 1 << power <= most)


def splits(question: Question, most: int) -> tuple[Parallel, ...]:
    """Of each copy on 1, 2, 4, ... devices, fewest first."""
    found = (split(question, n) for n in sizes(max(1, most)))
    return tuple(one for one in found if one is not None)


def machines(question: Question, parallel: Parallel) -> int:
    """How many machines one copy stands on."""
    return -(-parallel.tensor * parallel.pipeline // machine_devices(question.device))
