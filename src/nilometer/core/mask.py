"""Takes a run's secrets out of what servers and processes say: they may say back anything that they were told.

It looks for the values themselves, in the spellings in which they come back. What is a secret is told elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .errors import NiloError, Param
from .secrets import SHOWN

LEAST_CHARS = 3
"""A secret shorter than this is not looked for in what others say: it could be anything."""
BEGUN_CHARS = 6
"""So much of a secret at the very end of a text that was cut is taken for its beginning."""
WORD_CHARS = 200
"""The most that is kept of a name or a short text that a server gives."""
_ALONE_BELOW = 8
"""A shorter one is looked for where it stands alone: not within a word, though behind an escaped character."""
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


class Mask:
    """Puts `***` in the place of a run's secrets, in any spelling, in what others say.

    Made once and called only where there is something to be kept.
    """

    __slots__ = ("_known",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        told = {" ".join(secret.split()) for secret in secrets}
        longest_first = sorted(told, key=len, reverse=True)  # one may be part of another
        self._known = [_Known.of(secret) for secret in longest_first if len(secret) >= LEAST_CHARS]

    def __call__(self, text: str) -> str:
        """The text with every whole secret as `***`."""
        for known in self._known:
            text = known.whole.sub(SHOWN, text)
        return text

    def cut(self, text: str) -> str:
        """The same for a text that may have been cut: it may end in the beginning of a secret."""
        text = self(text)
        for known in self._known:
            for found in known.beginning.finditer(text):
                if found.end() < len(text) and _runs_out(text, found.end(), known.rest):
                    return text[: found.start()] + SHOWN
        return text

    def word(self, text: str) -> str:
        """A name or a short text of a server's, as it may be kept: masked, at most WORD_CHARS."""
        return self(text) if len(text) <= WORD_CHARS else self.cut(text[:WORD_CHARS])

    def params(self, params: Mapping[str, Param]) -> dict[str, Param]:
        """The parameters of an error or a finding, masked."""
        return {name: self.cut(value) if isinstance(value, str) else value for name, value in params.items()}

    def error(self, fault: NiloError) -> None:
        """Mask an error, and those it came from, in place."""
        fault.params.update(self.params(fault.params))
        if isinstance(fault.__cause__, NiloError):
            self.error(fault.__cause__)


NO_SECRETS = Mask()
"""It masks nothing, and cuts what is too long all the same."""


class _Known(NamedTuple):
    """A secret to be looked for. `rest` are the spellings of what comes after its `beginning`."""

    whole: re.Pattern[str]
    beginning: re.Pattern[str]
    rest: list[tuple[str, ...]]

    @classmethod
    def of(cls, secret: str) -> _Known:
        signs = [_spellings(sign) for sign in secret]
        patterns = [f"(?:{'|'.join(map(re.escape, ways))})" if len(ways) > 1 else ways[0] for ways in signs]
        end = ""
        if len(secret) < _ALONE_BELOW:
            patterns[0], end = _at_a_start(secret[0], patterns[0]), r"(?![^\W_])"
        border = BEGUN_CHARS - 1
        return cls(re.compile("".join([*patterns, end])), re.compile("".join(patterns[:border])), signs[border:])


def _at_a_start(sign: str, pattern: str) -> str:
    """The first character of a word, looked at before what stands before it: that is the quicker way round."""
    if not sign.isalnum() or not sign.isascii():
        return pattern
    before = (r"(?<!\w", "(?<=_", "(?<=%[0-9A-Fa-f]{2}", r"(?<=\\[a-z]", r"(?<=\\u[0-9A-Fa-f]{4}")
    return f"{sign}(?:{'|'.join(f'{behind}{sign})' for behind in before)})"


def _spellings(sign: str) -> tuple[str, ...]:
    """One character as it may come back: as it is, in JSON, in an address, in HTML, wrongly decoded. Longest first."""
    if sign.isascii() and sign.isalnum():
        return (sign,)
    data = sign.encode("utf-8", "replace")
    ways = {sign, f"\\{sign}", json.dumps(sign)[1:-1], _ENTITIES.get(sign, sign), f"&#{ord(sign)};"}
    for case in "xX":
        code = f"{ord(sign):02{case}}"
        ways |= {f"&#x{code};", f"\\x{code}", f"\\u{code:>04}", "".join(f"%{byte:02{case}}" for byte in data)}
    if sign in " +":
        ways |= {" ", "+", "\t"}
    if not sign.isascii():
        ways |= {data.decode("latin-1"), "\ufffd", "\ufffd" * len(data), f"%{ord(sign):02x}", f"%{ord(sign):02X}"}
    return tuple(sorted(ways, key=len, reverse=True))


def _runs_out(text: str, at: int, signs: Sequence[tuple[str, ...]]) -> bool:
    """Whether the text from here on is the beginning of these characters, be it that it ends within one."""
    for ways in signs:
        rest = text[at : at + len(ways[0])]
        if at + len(rest) == len(text) and any(way.startswith(rest) for way in ways):
            return True
        way = next((way for way in ways if rest.startswith(way)), None)
        if way is None:
            return False
        at += len(way)
    return False
