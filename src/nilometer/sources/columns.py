"""Traces in CSV, thousands of rows at a time: numpy on whole chunks of bytes, no object for a row.

It is sure of a row or says that it is not; those it is not sure of go to the reader of single rows, which alone decides
what is broken. So both read the same, and only speed differs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nilometer.workload.entry import Ints

Kind = Literal["length", "answered", "seconds", "moment", "moment_utc"]
"""`answered` is a length that is not 0; `moment` has no zone, `moment_utc` one of `+00:00` or `Z`; `seconds` are digits
with a point or without."""
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

_NEWLINE, _RETURN, _COMMA, _QUOTE, _POINT, _ZERO, _ASCII = 10, 13, 44, 34, 46, 48, 127
_LENGTH_DIGITS = 9
_SECONDS_WIDTH = 18
_MOMENT_WIDTH = 19
_FRACTION_DIGITS = 9
_DATE_DIGITS = (0, 1, 2, 3, 5, 6, 8, 9)
_TIME_DIGITS = (11, 12, 14, 15, 17, 18)
_MARKS = {4: (ord("-"),), 7: (ord("-"),), 10: (ord(" "), ord("T")), 13: (ord(":"),), 16: (ord(":"),)}
_MONTH_DAYS = np.array((0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0))


class Plan(NamedTuple):
    """How many columns a line has, and of which kind those are that are wanted, by their place."""

    columns: int
    wanted: dict[int, Kind]


class Parsed(NamedTuple):
    """The wanted columns by their place, stamps in ns; `sure` says which rows. `start`, `stop`: where lines lie."""

    values: dict[int, Ints]
    sure: Bools
    start: Ints
    stop: Ints


def parse(chunk: bytes, plan: Plan) -> Parsed:
    """The rows of a chunk of whole lines."""
    data = np.frombuffer(chunk, np.uint8)
    stop = np.flatnonzero(data == _NEWLINE)
    start = np.concatenate((np.zeros(1, np.int64), stop[:-1] + 1))
    stop = stop - ((data[stop - 1] == _RETURN) & (stop > start))
    commas = np.flatnonzero(data == _COMMA)
    first = np.searchsorted(commas, start)
    sure = np.diff(np.append(first, len(commas))) == plan.columns - 1
    if b'"' in chunk or not chunk.isascii():
        odd = np.flatnonzero((data == _QUOTE) | (data > _ASCII))
        sure[np.searchsorted(start, odd, "right") - 1] = False
    first = np.minimum(first, max(len(commas) - plan.columns + 1, 0))
    values = {}
    if len(commas) < plan.columns - 1:
        return Parsed({place: np.zeros_like(start) for place in plan.wanted}, np.zeros_like(sure), start, stop)
    for place, kind in plan.wanted.items():
        low = start if place == 0 else commas[first + place - 1] + 1
        high = stop if place == plan.columns - 1 else commas[first + place]
        values[place], ok = _READERS[kind](data, low, high)
        sure &= ok
    return Parsed(values, sure, start, stop)


def _digits(data: Bytes, at: Ints) -> Bytes:
    """Digits at these places, above 9 where there is none; a place outside of the chunk reads what is at its end."""
    return data[np.clip(at, 0, len(data) - 1)] - np.uint8(_ZERO)


def _length(data: Bytes, low: Ints, high: Ints) -> tuple[Ints, Bools]:
    width = high - low
    ok = (width >= 1) & (width <= _LENGTH_DIGITS)
    value = np.zeros(len(low), np.int64)
    for place in range(int(np.max(width, where=ok, initial=0))):
        digit = _digits(data, high - 1 - place)
        inside = width > place
        ok &= ~inside | (digit <= 9)
        value += np.where(inside, digit, 0) * np.int64(10**place)
    return value, ok


def _answered(data: Bytes, low: Ints, high: Ints) -> tuple[Ints, Bools]:
    value, ok = _length(data, low, high)
    return value, ok & (value > 0)


def _seconds(data: Bytes, low: Ints, high: Ints) -> tuple[Ints, Bools]:
    """Digits, perhaps a point and up to nine more: exact in ns."""
    width = high - low
    ok = (width >= 1) & (width <= _SECONDS_WIDTH)
    value = np.zeros(len(low), np.int64)
    behind = np.full(len(low), -1)
    for place in range(int(np.max(width, where=ok, initial=0))):
        at = low + place
        inside = width > place
        point = inside & (data[np.clip(at, 0, len(data) - 1)] == _POINT)
        digit = _digits(data, at)
        figure = inside & ~point
        ok &= ~(point & (behind >= 0)) & (~figure | (digit <= 9))
        value = np.where(figure, value * 10 + digit, value)
        behind = np.where(point, 0, np.where(figure & (behind >= 0), behind + 1, behind))
    decimals = np.maximum(behind, 0)
    before = width - decimals - (behind >= 0)
    ok &= (behind != 0) & (decimals <= _FRACTION_DIGITS) & (before >= 1) & (before <= _LENGTH_DIGITS)
    return np.where(ok, value, 0) * 10 ** (9 - np.minimum(decimals, 9)), ok


def _moment_utc(data: Bytes, low: Ints, high: Ints) -> tuple[Ints, Bools]:
    last = np.maximum(high - 1, low)
    short = data[last] == ord("Z")
    ok = short.copy()
    long = np.ones(len(low), np.bool_)
    for place, sign in enumerate(b"+00:00"):
        long &= data[np.maximum(high - 6 + place, low)] == sign
    ok |= long
    ns, read = _moment(data, low, high - np.where(short, 1, 6))
    return ns, read & ok


def _moment(data: Bytes, low: Ints, high: Ints) -> tuple[Ints, Bools]:
    """`YYYY-MM-DD HH:MM:SS` and a fraction of up to nine digits, as ns since 1970."""
    width = high - low
    ok = (width >= _MOMENT_WIDTH) & (width != _MOMENT_WIDTH + 1) & (width <= _MOMENT_WIDTH + 1 + _FRACTION_DIGITS)
    text = data[np.minimum(low[:, None] + np.arange(_MOMENT_WIDTH), len(data) - 1)]
    for place, signs in _MARKS.items():
        ok &= np.isin(text[:, place], signs) if len(signs) > 1 else text[:, place] == signs[0]
    figures = (text - np.uint8(_ZERO)).astype(np.int64)
    ok &= (figures[:, _DATE_DIGITS + _TIME_DIGITS] <= 9).all(axis=1)
    year = figures[:, 0] * 1000 + figures[:, 1] * 100 + figures[:, 2] * 10 + figures[:, 3]
    month, day, hour, minute, second = (figures[:, at] * 10 + figures[:, at + 1] for at in (5, 8, 11, 14, 17))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    most = _MONTH_DAYS[np.minimum(month, 15)] + (leap & (month == 2))
    ok &= (year >= 1900) & (year <= 2261) & (day >= 1) & (day <= most) & (hour < 24) & (minute < 60) & (second < 60)
    whole_s = _days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
    fraction, read = _fraction_ns(data, low + _MOMENT_WIDTH, high)
    ok &= read
    return np.where(ok, whole_s, 0) * 1_000_000_000 + np.where(ok, fraction, 0), ok


def _fraction_ns(data: Bytes, low: Ints, high: Ints) -> tuple[Ints, Bools]:
    width = high - low
    ok = (width <= 0) | (data[np.minimum(low, len(data) - 1)] == _POINT)
    value = np.zeros(len(low), np.int64)
    for place in range(min(int(width.max(initial=0)) - 1, _FRACTION_DIGITS)):
        inside = width - 1 > place
        digit = _digits(data, low + 1 + place)
        ok &= ~inside | (digit <= 9)
        value += np.where(inside, digit, 0) * np.int64(10 ** (8 - place))
    return value, ok


def _days(year: Ints, month: Ints, day: Ints) -> Ints:
    """Days since 1970 of a Gregorian date; Hinnant, chrono-compatible low-level date algorithms, `days_from_civil`."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days: Ints = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days


_READERS = {"length": _length, "answered": _answered, "seconds": _seconds, "moment": _moment, "moment_utc": _moment_utc}
