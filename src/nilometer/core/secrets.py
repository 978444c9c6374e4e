"""What must not be told, by its name or its place in an address. Known values are taken out of texts by `net.mask`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

SHOWN = "***"

_SECRET_NAME = re.compile(
    r"(?i)(^|[-_.])(api|access|auth|bearer|hf|hub|openai|private|secret|session|subscription|x)[-_]?(keys?|token)$"
    r"|^-*(keys?|token|hft|hftoken|pwd|auth|sig)$|secret|passw(or)?d|credential|authorization|signature|cookie"
)
_KEY_VALUE = re.compile(
    r"(?i)([?&;#][^=&;#]*(?:key|token|secret|password|passwd|pwd|credential|auth|signature|sig)[^=&]*=)([^&]*)"
)
"""A key-like name with its value. Only `&` ends the value: servers differ in whether `;` does."""


def is_secret_name(name: str) -> bool:
    """Whether a flag, field, label or header of this name holds a secret: `--api-key`, `hf_token`; `max_tokens` not."""
    return _SECRET_NAME.search(name) is not None


def mask_url(url: str) -> str:
    """An address with its credentials and key-like values of query and fragment as `***`."""
    return _KEY_VALUE.sub(rf"\1{SHOWN}", re.sub(r"//[^/?#\s]*@", f"//{SHOWN}@", url))


def key_values(url: str) -> list[str]:
    """The key-like values of an address, as written."""
    return [value for _, value in _KEY_VALUE.findall(url)]


def hide_named(value: Any) -> Any:
    """The same JSON value with every text under a secret name as `***`."""
    if isinstance(value, Mapping):
        return {k: SHOWN if is_secret_name(str(k)) and isinstance(v, str) else hide_named(v) for k, v in value.items()}
    return [hide_named(item) for item in value] if isinstance(value, list) else value


def named_in(value: Any) -> Iterable[str]:
    """The texts under secret names in a JSON value."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if is_secret_name(str(key)) and isinstance(item, str):
                yield item
            else:
                yield from named_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from named_in(item)
