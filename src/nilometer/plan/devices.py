"""Devices: what memory each has and shows a program, how fast it reads it and computes. `device_table` has the rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from statistics import median

import msgspec

from nilometer.core.errors import SpecError

from .device_table import ALIASES, NOTES, PRINTED_BY, SHOWN, SOURCES, STATED


class Shown(msgspec.Struct, frozen=True):
    """The memory that a program is shown, and whether that is known or estimated."""

    bytes: float
    known: bool


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device; rates are of dense matrices, never the sparse ones. None = not stated or not supported."""

    name: str
    kind: str
    """gpu, soc, cpu, accelerator."""
    memory_bytes: float
    """What its label says; labels count in GiB. 0 = as much as was built in (processors)."""
    memory: str = ""
    """The kind of it, as the table has them."""
    visible_bytes: float | None = None
    """What its driver was seen to show a program; None = not known."""
    visible_source: str = ""
    shown_share: float = 1.0
    """What of the label is shown, where that must be estimated."""
    bandwidth_bytes_per_s: float | None
    flops: Mapping[str, float]
    """Precision of the arithmetic (fp16, fp8, int8, fp4) -> operations per second."""
    link_bytes_per_s: float | None = None
    """To a neighbour of the same machine, in one direction."""
    link: str | None = None
    power_w: float | None = None
    confidence: str = "high"
    source: str
    note: str = ""

    @property
    def shown_bytes(self) -> Shown:
        """What an engine takes its share of: what was seen, or the label's share that like memory shows."""
        if self.visible_bytes is not None:
            return Shown(self.visible_bytes, known=True)
        return Shown(self.shown_share * self.memory_bytes, known=False)


_VENDORS = re.compile(r"\b(nvidia|geforce|tesla|quadro|amd|instinct|radeon|apple|intel|huawei)\b")
_GIB = 2.0**30
_BYTES = {"GiB": _GIB, "MiB": 2.0**20, "MB": 1e6}
_RATES = ("fp16", "fp8", "int8", "fp4")
_NEAREST = 5


def _number(text: str) -> float | None:
    return None if text == "-" else float(text)


def _printed_bytes(figure: str) -> float:
    """Of "22563MiB", "39.494GiB", "12713.12MB", "2x65520MiB"."""
    dies, _, one = figure.rpartition("x")
    value, unit = re.findall(r"[\d.]+|[A-Za-z]+", one)
    return float(dies or 1) * float(value) * _BYTES[unit]


def cuda_bytes(smi_bytes: float) -> float:
    """What CUDA shows of a card of which nvidia-smi shows so many bytes.

    0.4 GiB and 0.3 % less: within 0.3 % on eight cards from 15 to 179 GiB where both are known.
    """
    return 0.997 * smi_bytes - 0.4 * _GIB


def _seen(line: str) -> tuple[str, tuple[float, str]]:
    name, by, figure = line.split()
    size = _printed_bytes(figure)
    return name, (cuda_bytes(size) if by == "smi" else size, f"{figure} ({PRINTED_BY[by]})")


_SEEN: Mapping[str, tuple[float, str]] = dict(map(_seen, SHOWN.strip().splitlines()))


def _device(line: str) -> Device:
    name, kind, label, memory, bandwidth, *rates, link_rate, link, power, confidence, source = line.split()
    number = {key: _number(text) for key, text in zip(_RATES, rates, strict=True)}
    seen, printed = _SEEN.get(name, (None, ""))
    return Device(
        name=name,
        kind=kind,
        memory_bytes=(_number(label) or 0.0) * _GIB,
        memory=memory,
        visible_bytes=seen,
        visible_source=printed,
        bandwidth_bytes_per_s=None if bandwidth == "-" else float(bandwidth) * 1e9,
        flops={key: value * 1e12 for key, value in number.items() if value is not None},
        link_bytes_per_s=None if link_rate == "-" else float(link_rate) * 1e9,
        link=None if link == "-" else link.replace("_", " "),
        power_w=_number(power),
        confidence=confidence,
        source=SOURCES[name if source == "own" else source],
        note=NOTES.get(name, ""),
    )


def shown_share(memory: str, known: Mapping[str, Device]) -> float:
    """The median share of the label that devices with such memory were seen to show; all of it where none was."""
    shares = [
        one.visible_bytes / one.memory_bytes
        for one in known.values()
        if one.memory == memory and one.visible_bytes is not None
    ]
    return median(shares) if shares else 1.0


_ROWS = {one.name: one for one in map(_device, STATED.strip().splitlines())}

DEVICES: Mapping[str, Device] = {
    name: one
    if one.visible_bytes is not None
    else msgspec.structs.replace(one, shown_share=shown_share(one.memory, _ROWS))
    for name, one in _ROWS.items()
}
"""THE table, by name."""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", _VENDORS.sub("", name.lower()))


_BY_NAME: Mapping[str, str] = {
    _plain(other): name for name in DEVICES for other in (name, *ALIASES.get(name, "").split())
}


def device(name: str) -> Device:
    """The device of that name or alias, whatever its case, dashes and vendor; SpecError with the nearest names."""
    known = _BY_NAME.get(_plain(name))
    if known is None:
        raise SpecError("device_unknown", name=name, nearest=", ".join(nearest(name)))
    return DEVICES[known]


def nearest(name: str) -> tuple[str, ...]:
    """Names of the table that look like it, best first; where none does, some that are common."""
    close = get_close_matches(_plain(name), list(_BY_NAME), n=_NEAREST, cutoff=0.5)
    found = dict.fromkeys(_BY_NAME[one] for one in close)
    return tuple(found) or ("H100-SXM-80G", "A100-SXM-80G", "L40S", "RTX-4090", "Apple-M4-Max")


def device_of(
    bandwidth_bytes_per_s: float,
    flops: float,
    memory_bytes: float = 0.0,
    *,
    name: str = "given",
    kind: str = "gpu",
    source: str = "given by you",
) -> Device:
    """A device from two numbers: how fast it reads its memory and computes (fp16; other precisions at the same rate).

    Memory that is given is what a program is shown. SpecError where one is not a number above 0.
    """
    for key, value in (("bandwidth", bandwidth_bytes_per_s), ("flops", flops)):
        if not 0 < value < float("inf"):
            raise SpecError("device_rate_unusable", key=key, value=value)
    return Device(
        name=name,
        kind=kind,
        memory_bytes=memory_bytes,
        visible_bytes=memory_bytes or None,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        flops={"fp16": flops},
        confidence="given",
        source=source,
    )
