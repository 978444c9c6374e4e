"""One tree of errors: a slug and parameters; `text` turns them into a sentence in the user's language."""

from __future__ import annotations

Param = str | int | float | None


class NiloError(Exception):
    """Base of all expected failures. `slug` is a heading in docs/reference/errors; `params` fill its sentence.

    One raised `from` another of ours has its sentence within its own, as `cause`, and its next step as `remedy`.
    """

    exit_code = 3

    def __init__(self, slug: str, **params: Param) -> None:
        super().__init__(slug, params)
        self.slug = slug
        self.params = params

    def __str__(self) -> str:
        told = ", ".join(f"{key}={value!r}" for key, value in self.params.items())
        return f"{self.slug}({told})"


class SpecError(NiloError):
    """What the user asked for cannot be done as written; nothing was sent."""

    exit_code = 2


class DataError(NiloError):
    """A file cannot be read as what it should be."""

    exit_code = 2


class TargetError(NiloError):
    """The service under test is not reachable or does not answer as a model server."""


class EngineError(NiloError):
    """An engine that nilometer launches did not start, or died."""


class ArchiveError(NiloError):
    """The performance archive cannot be opened, read or written."""


class ConditionError(NiloError):
    """What was measured is no evidence for what was asked: the conditions are not alike."""

    exit_code = 4
