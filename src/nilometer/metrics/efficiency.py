"""Tokens for what served them: devices, processor time, energy. None where what was drawn is not known throughout."""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.run import Draw
from nilometer.core.summary import Efficiency

from .quantiles import Floats
from .window import Span

_MJ_PER_KWH = 3.6e9
_UNSEEN_NS = NS_PER_S
"""Up to so much of the window may lie outside of what was sampled."""


def efficiency(draw: Draw, span: Span, tokens_per_s: float | None, devices: int | None) -> Efficiency:
    """`devices` is how many the user said that serve; None leaves it to what was seen."""
    held = draw.devices if devices is None else devices
    core_s = None if held else _over(span, _column(draw.at), _column(draw.cpu) / NS_PER_S)
    energy_kwh = _over(span, _column(draw.at), _energy_kwh(draw))
    tokens = None if tokens_per_s is None else tokens_per_s * span.length_s
    return Efficiency(
        devices=held,
        tokens_per_device_s=_each(tokens_per_s, held),
        tokens_per_core_s=_each(tokens, core_s),
        energy_kwh=energy_kwh,
        tokens_per_kwh=_each(tokens, energy_kwh),
    )


def _column(packed: bytes) -> Floats:
    return np.frombuffer(packed, dtype="<i8").astype(np.float64)


def _energy_kwh(draw: Draw) -> Floats:
    """The energy drawn up to each row: between two rows, at the mean of their powers."""
    at_s, power_mw = _column(draw.at) / NS_PER_S, _column(draw.power)
    if not len(power_mw):
        return power_mw
    steps = np.diff(at_s) * (power_mw[1:] + power_mw[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)]) / _MJ_PER_KWH


def _over(span: Span, at_ns: Floats, sum_so_far: Floats) -> float | None:
    """By how much a sum grew over the window; None where it was not sampled all through it."""
    if len(sum_so_far) < 2 or span.start_ns < at_ns[0] - _UNSEEN_NS or span.end_ns > at_ns[-1] + _UNSEEN_NS:
        return None
    before, after = np.interp([span.start_ns, span.end_ns], at_ns, sum_so_far)
    return float(after - before)


def _each(tokens: float | None, of: float | None) -> float | None:
    return tokens / of if tokens is not None and of else None
