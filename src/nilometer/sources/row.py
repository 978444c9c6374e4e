"""What a reader of one row works with: how it refuses, passes over, and takes lengths, stamps and messages out.

A stamp is read in the unit that its format states; none is ever told from the size of its number.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NamedTuple

import msgspec

from nilometer.workload import estimate
from nilometer.workload.entry import Entry, Part

Unit = Literal["s", "ms", "us", "ns", "iso"]
Zone = Literal["none", "required", "any"]
NS_PER = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
MOST_TOKENS = 1_000_000_000

USERS = frozenset({"human", "user"})
ASSISTANTS = frozenset({"gpt", "chatgpt", "assistant", "bing", "bard"})

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|UTC|[+-]\d\d:?\d\d)?", re.ASCII
)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Broken(Exception):  # noqa: N818 - one row that cannot be read; its slug is an error's
    """A row that cannot be read: `slug` names an error whose words take file, line and detail."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(slug, detail)
        self.slug = slug
        self.detail = detail[:200]


FAULTS = (Broken, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""All that making a row of its bytes may raise."""


def broken(fault: Exception) -> Broken:
    """What is wrong with a row, whichever of FAULTS told it."""
    if isinstance(fault, Broken):
        return fault
    if isinstance(fault, msgspec.ValidationError):
        return Broken("field_wrong", str(fault))
    return Broken("not_utf8" if isinstance(fault, UnicodeDecodeError) else "json_broken", str(fault))


class Skipped(NamedTuple):
    """A row that is well formed and no request to send; `reason` is a slug."""

    reason: str


Got = Entry | Skipped


def iso_ns(text: str, zone: Zone = "any") -> int:
    """`2024-05-10 00:00:00.009930+00:00` as ns since 1970; without a zone it is UTC. Refuses `stamp_wrong`,
    `zone_wrong`."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        raise Broken("stamp_wrong", repr(text[:60]))
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] - (month == 2 and not leap)):
        raise Broken("stamp_wrong", repr(text[:60]))
    if not (1678 <= year <= 2261 and hour < 24 and minute < 60 and second < 60):
        raise Broken("stamp_wrong", repr(text[:60]))
    if (found[8] is not None) != (zone == "required") and zone != "any":
        raise Broken("zone_wrong", repr(text[:60]))
    whole_s = timegm((year, month, day, hour, minute, second)) - _zone_s(found[8])
    return whole_s * NS_PER["s"] + int((found[7] or "").ljust(9, "0"))


def _zone_s(zone: str | None) -> int:
    if zone is None or zone in ("Z", "UTC"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 14 or minutes > 59:
        raise Broken("zone_wrong", zone)
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def number_ns(value: float | str, unit: Unit) -> int:
    """A number of `unit` as ns; text and whole numbers exactly. Refuses `stamp_wrong`."""
    if isinstance(value, float) and abs(value) < 1e10:
        whole = int(value)
        return whole * NS_PER[unit] + round((value - whole) * NS_PER[unit])
    try:
        found = Decimal(value)
    except InvalidOperation:
        raise Broken("stamp_wrong", f"{str(value)[:60]!r} ({unit})") from None
    if not found.is_finite() or abs(found) > 1e19:
        raise Broken("stamp_wrong", f"{str(value)[:60]} ({unit})")
    return round(found * NS_PER[unit])


def stamp_ns(value: object, unit: Unit, zone: Zone = "any") -> int | None:
    """A stamp of a row as ns; None where it holds none."""
    if value is None or value == "":
        return None
    if unit == "iso":
        if not isinstance(value, str):
            raise Broken("stamp_wrong", str(value)[:60])
        return iso_ns(value, zone)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Broken("stamp_wrong", f"{str(value)[:60]} ({unit})")
    return number_ns(value, unit)


def length(value: object, name: str) -> int | None:
    """A number of tokens; None where there is none. Refuses `length_wrong`: negative, broken, not a number, absurd."""
    if value is None or value == "":
        return None
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    found = value
    if isinstance(found, str):
        try:
            found = int(found) if found.strip().lstrip("+-").isdecimal() else float(found)
        except ValueError:
            raise Broken("length_wrong", f"{name}: {value!s:.60}") from None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST_TOKENS:
        raise Broken("length_wrong", f"{name}: {value!s:.60}")
    return found


def blocks(ids: Sequence[int]) -> tuple[int, ...]:
    """Ids of blocks. Refuses `blocks_wrong` those that 64 bits cannot hold: no file of ours could keep them."""
    wrong = next((each for each in (min(ids), max(ids)) if not -(1 << 63) <= each < 1 << 63), None) if ids else None
    if wrong is not None:
        raise Broken("blocks_wrong", f"hash_ids: {wrong!s:.60}")
    return tuple(ids)


def needed(value: int | None, name: str) -> int:
    """The length that a row cannot do without. Refuses `length_wrong`."""
    if value is None:
        raise Broken("length_wrong", f"{name}: -")
    return value


class Piece(msgspec.Struct, gc=False):
    """A part of a message's content; `content` is the text in OpenTelemetry's names."""

    type: str = "text"
    text: str | None = None
    content: Any = None

    def words(self) -> str:
        """Its text; nothing where it is something else."""
        return self.text or (self.content if self.type == "text" and isinstance(self.content, str) else "")


class Message(msgspec.Struct, gc=False):
    """A message of OpenAI's form, or of OpenTelemetry's with `parts`; what it may hold besides text is passed over."""

    role: str
    content: str | list[Piece | str] | None = None
    parts: list[Piece] = []


def part(message: Message) -> Part:
    """The message with its texts as one."""
    content = message.content or message.parts
    if isinstance(content, list):
        content = "".join(piece if isinstance(piece, str) else piece.words() for piece in content)
    return Part("assistant" if message.role in ASSISTANTS else message.role, content)


def chat(line: int, messages: Iterable[Message], reply: str | None = None, **facts: Any) -> Got:
    """A request of messages: its turns are those of the user, its input the text of all where none is stated."""
    parts = tuple(part(message) for message in messages)
    users = [each for each in parts if each.role in USERS]
    if not parts:
        return Skipped("no_turns")
    if not users or not any(each.text for each in users):
        return Skipped("empty_prompt")
    return told(Entry(line=line, turns=len(users), parts=parts, **facts), reply)


def prompt(line: int, text: str, **facts: Any) -> Got:
    """A request of one text."""
    return told(Entry(line=line, parts=(Part("user", text),), **facts)) if text else Skipped("empty_prompt")


def told(entry: Entry, reply: str | None = None) -> Entry:
    """The entry with lengths that were not stated estimated from its texts, and marked."""
    changes: dict[str, Any] = {}
    if entry.input_tokens is None and entry.parts:
        changes = {"input_tokens": sum(estimate.tokens(each.text or "") for each in entry.parts), "guessed_input": True}
    if entry.output_tokens is None and reply:
        changes |= {"output_tokens": estimate.tokens(reply), "guessed_output": True}
    return msgspec.structs.replace(entry, **changes) if changes else entry
