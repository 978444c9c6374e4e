"""Takes the run's own secrets out of what a server sends back: in an error, a header, an answer. Pure.

What is a secret by its name is for `core.secrets` to say.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from nilometer.core.secrets import SHOWN, is_secret_name, key_values

_PLAIN_LEAST = 6
"""A header's value is often no secret: what is shorter than this is left, else every "1" would go."""
_SECRET_LEAST = 3
"""What is known to be a secret is masked from this length on; standing alone, where it is shorter than a word."""
_ALONE_BELOW = 8
_BEGUN_LEAST = 4
"""So much of a secret at the very end of a text that was cut is taken for its beginning."""


def secrets_in(url: str) -> set[str]:
    """What of an address must not be told: credentials, apart, as a pair and as sent; key-like values of its query."""
    parts = urlsplit(url)
    found = set(key_values(url))
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        found |= {pair, unquote(parts.password or ""), b64encode(pair.encode()).decode()}
    return found


def in_headers(headers: Iterable[tuple[str, str]]) -> set[str]:
    """What of these headers must not be told: values, the part after a scheme, and what a Basic pair is made of."""
    found: set[str] = set()
    for name, value in headers:
        scheme, _, rest = value.strip().partition(" ")
        known = is_secret_name(name)
        texts = {value.strip(), rest.strip(), *(_pair(rest) if scheme.lower() == "basic" else ())}
        found |= {text for text in texts if len(text) >= (_SECRET_LEAST if known else _PLAIN_LEAST)}
    return found


def _pair(encoded: str) -> set[str]:
    """`user:password` and the password of Basic credentials; empty where they are none."""
    try:
        pair = b64decode(encoded, validate=True).decode()
    except (NotBase64, UnicodeDecodeError):
        return set()
    return {pair, pair.partition(":")[2]}


class Mask:
    """Takes these secrets out of a text, however they are written in it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= _SECRET_LEAST for form in _forms(secret)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._any = re.compile("|".join(map(_pattern, self._forms))) if self._forms else None

    def __call__(self, text: str) -> str:
        """The text with `***` for every secret, and for one that is cut off by its end."""
        if self._any is None:
            return text
        text = self._any.sub(SHOWN, text)
        begun = max((_begun(text, form) for form in self._forms), default=0)
        return text[:-begun] + SHOWN if begun else text

    def all(self, values: dict[str, Any]) -> dict[str, Any]:
        """The same values, the texts among them masked."""
        return {key: self(value) if isinstance(value, str) else value for key, value in values.items()}


def _forms(secret: str) -> set[str]:
    """A secret as it may be written: plainly, in a URL, in JSON, in HTML."""
    in_json, ascii_json = (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    spoken = {secret, unquote(secret)}
    written = {form for text in spoken for form in (quote(text), quote(text, safe=""), quote_plus(text), escape(text))}
    return spoken | written | {in_json, ascii_json, in_json.replace("/", "\\/")}


def _pattern(form: str) -> str:
    plain = re.escape(form)
    return rf"(?<!\w){plain}(?!\w)" if len(form) < _ALONE_BELOW else plain


def _begun(text: str, form: str) -> int:
    """How many characters at the end of the text are the beginning of this form, and no more than the beginning."""
    for size in range(min(len(form) - 1, len(text)), _BEGUN_LEAST - 1, -1):
        if text.endswith(form[:size]):
            return size
    return 0
