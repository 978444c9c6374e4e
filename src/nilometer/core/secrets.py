"""What is a secret, told by its place, and what stands for it in all that is stored and shown: `***`.

A secret is what stands before the @ of an address or under a key-like name: a parameter of an address, an engine's
flag, a key of a request body, a label. There is one rule for such names. For each kind of place `mask_...` hides the
secrets and `in_...` tells them, so that a `Mask` can look for them elsewhere.
"""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any

SHOWN = "***"

_SECRET_NAME = re.compile(
    r"(?:keys?|token|(?:api|access|auth|bearer|hf|refresh|session)tokens|hft|secrets?|jwt|cookies?|signature|sig|bearer"
    r"|pass(?:words?|wds?|phrases?|codes?)?|pwd|credentials?|creds?|auth|authori[sz]ation)"
    r"(?:value|data|code|string|hash)?\d*$"
    r"|(?:apikey|secret|passw|credential|signature|authorization)(?!.*(?:file|path|folder|dir|env|name|id|type)$)"
)
"""On a name in lower case without its separators. The last noun says what a value is: `api_key`, but `token_limit`."""
_OTHER_NAME = re.compile(r"(?:bos|eos|image|mask|pad|sep|stop|unk)token$|cachekey$")
"""Tokens of a vocabulary and keys of a cache: fields of the servers that are no secrets."""
_CREDENTIALS = re.compile(r"//([^/?#\s]*)@")
_PARAMETER = re.compile(r"[?&;#]([^?=&;#]*)=")
_FLAG_PAIR = re.compile(r"(?s)(--?[\w-]+=)(.*)")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://")
_PLAIN_LEAST = 6
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SCHEMES = frozenset({"apikey", "basic", "bearer", "key", "token"})
_PART = re.compile(r"=\s*\"?([^\s\";,]{6,})")


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret: `--api-key`, `hf_token`, `Authorization`; `max_tokens` not."""
    bare = re.sub(r"[^a-z0-9]", "", name.lower())
    return _SECRET_NAME.search(bare) is not None and not _OTHER_NAME.search(bare)


def mask_url(url: str) -> str:
    """An address with its credentials and key-like values of query and fragment as `***`."""
    url = _CREDENTIALS.sub(f"//{SHOWN}@", url)
    shown, at = "", 0
    for start, end in _key_values(url):
        shown, at = shown + url[at:start] + SHOWN, end
    return shown + url[at:]


def mask_flags(words: Sequence[str]) -> list[str]:
    """An engine's flags as they may be stored and shown: values of key-like ones, and secrets of addresses, `***`."""
    hidden = dict(_flag_values(words))
    shown = [mask_url(word) if "://" in word else word for word in words]
    return [words[i][: hidden[i]] + SHOWN if i in hidden else word for i, word in enumerate(shown)]


def mask_target(target: str) -> str:
    """A target with its secrets as `***`: an address, or an engine spec `NAME:FLAGS`."""
    if _ADDRESS.match(target):
        return mask_url(target)
    name, colon, rest = target.partition(":")
    words = _words(rest)
    masked = mask_flags(words)
    return target if masked == words else name + colon + shlex.join(masked)


def mask_tree(tree: Any) -> Any:
    """A tree of plain values, such as a request body, with what stands under key-like names, and in addresses, hidden.

    Neither null nor true and false are secrets.
    """
    if isinstance(tree, dict):
        return {name: SHOWN if _hides(name, value) else mask_tree(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [mask_tree(value) for value in tree]
    return mask_url(tree) if isinstance(tree, str) and _ADDRESS.match(tree) else tree


def in_header(name: str, value: str) -> Iterator[str]:
    """The secrets of a header: its value without an authorization's scheme, the parts of a cookie.

    Of one whose name does not speak of a secret nothing shorter than 6 characters: else every "1" would be one.
    """
    least = 1 if is_secret_name(name) else _PLAIN_LEAST
    return (secret for secret in _in_value(value.strip()) if len(secret) >= least)


def _in_value(value: str) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    rest = rest.strip()
    if not rest or scheme.lower() not in _SCHEMES:
        yield value
    yield from (rest, *_PART.findall(value))
    if scheme.lower() == "basic":
        try:
            yield from _in_credentials(b64decode(rest, validate=True).decode())
        except ValueError:
            return


def in_url(url: str) -> Iterator[str]:
    """The secrets of an address: user, password, the two as HTTP sends them; key-like values, as meant and as sent."""
    for found in _CREDENTIALS.finditer(url):
        user, _, password = found[1].partition(":")
        yield from _in_credentials(f"{_decoded(user)}:{_decoded(password)}")
    for start, end in _key_values(url):
        yield from (url[start:end], _decoded(url[start:end]))


def in_flags(words: Sequence[str]) -> Iterator[str]:
    """The secrets among an engine's flags; of several keys in one flag each."""
    for place, start in _flag_values(words):
        yield from words[place][start:].split(",")
    for word in words:
        yield from in_url(word)


def in_target(target: str) -> Iterator[str]:
    """The secrets of a target: an address, or an engine spec `NAME:FLAGS`."""
    return in_url(target) if _ADDRESS.match(target) else in_flags(_words(target.partition(":")[2]))


def in_tree(tree: Any) -> Iterator[str]:
    """The secrets of a tree of plain values: what `mask_tree` hides."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _leaves(value) if _hides(name, value) else in_tree(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from in_tree(value)
    elif isinstance(tree, str) and _ADDRESS.match(tree):
        yield from in_url(tree)


def _key_values(url: str) -> Iterator[tuple[int, int]]:
    """Where the values of key-like parameters stand. Only `&` ends one: servers differ in whether `;` does."""
    at = 0
    for found in _PARAMETER.finditer(url):
        if found.start() >= at and is_secret_name(_decoded(found[1])):
            end = url.find("&", found.end())
            at = len(url) if end < 0 else end
            yield found.end(), at


def _flag_values(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The words that are or hold the value of a key-like flag, each with where the value begins in it."""
    expected = False
    for place, word in enumerate(words):
        pair = _FLAG_PAIR.fullmatch(word)
        if expected and not word.startswith("--"):
            yield place, 0
            expected = False
        elif pair:
            if is_secret_name(pair[1]):
                yield place, len(pair[1])
            expected = False
        else:
            expected = word.startswith("-") and is_secret_name(word)


def _words(flags: str) -> list[str]:
    """The flags of an engine spec as a shell splits them; where it cannot, as they stand: they will be refused."""
    try:
        return shlex.split(flags)
    except ValueError:
        return flags.split()


def _hides(name: str, value: Any) -> bool:
    return value is not None and not isinstance(value, bool) and is_secret_name(name)


def _leaves(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(value)
    elif tree is not None and not isinstance(tree, bool):
        for secret in _in_value(str(tree)):
            yield from (secret, json.dumps(secret)[1:-1])  # as it is meant, and as it is sent


def _in_credentials(pair: str) -> Iterator[str]:
    """Of `user:password`: both, the password (a user without one is the key), and what HTTP makes of the two."""
    user, _, password = pair.partition(":")
    yield from (pair, password or user)
    sent = b64encode(pair.encode()).decode().rstrip("=")
    yield from (sent, sent.replace("+", "-").replace("/", "_"))


def _decoded(text: str) -> str:
    """Percent-encoding undone."""
    return _PERCENT.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)
