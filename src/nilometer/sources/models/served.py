"""What a running server says of its model."""

from __future__ import annotations

import msgspec


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says; None = it does not say. `context` is of one request."""

    url: str
    id: str | None = None
    root: str | None = None
    """What the id stands for, where the server gives its model another name."""
    others: tuple[str, ...] = ()
    context: int | None = None
    trained_context: int | None = None
    slots: int | None = None
    parameters: int | None = None
    weight_bytes: int | None = None
    precision: str | None = None
    path: str | None = None
    local: bool = False
    """Whether the path is one of this machine."""
