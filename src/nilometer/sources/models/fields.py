"""The fields of a model's description, taken one by one; what cannot be is refused with its file and name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nilometer.core.errors import DataError

MOST = 10**9
"""No width, rank or number of words of a model is larger."""
LAYERS_MOST = 10_000
_SHOWN_CHARS = 60


class Fields:
    """One object of a description. `names` translates the usual name of a field to the one that this family gives it.

    A field that is null counts as absent.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        file: str,
        *,
        names: Mapping[str, str] | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self.values = values
        self.file = file
        self._names = names or {}
        self._defaults = defaults or {}

    def told(self, names: Mapping[str, str], defaults: Mapping[str, object]) -> Fields:
        """The same fields with the names and defaults of a family."""
        return Fields(self.values, self.file, names=names, defaults=defaults)

    def over(self, outer: Fields) -> Fields:
        """These fields, and where they lack one that of the object around them."""
        return Fields({**outer.values, **self.values}, self.file)

    def name(self, field: str) -> str:
        """What it is called here."""
        return self._names.get(field, field)

    def get(self, field: str) -> object:
        """As it stands, or its default; None where there is neither."""
        for name in (self.name(field), field):
            found = self.values.get(name)
            if found is not None:
                return found
        return self._defaults.get(field)

    def maybe(self, *fields: str, least: int = 1, most: int = MOST) -> int | None:
        """The first of these that is there, as a whole number. DataError `model_field_bad`."""
        for field in fields:
            found = self.get(field)
            if found is None:
                continue
            if isinstance(found, float) and math.isfinite(found) and found == int(found):
                found = int(found)
            if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
                raise self.bad(field, found, f"{least}..{most}")
            return found
        return None

    def whole(self, *fields: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """The same; DataError `model_field_missing` where there is none and no default."""
        found = self.maybe(*fields, least=least, most=most)
        if found is not None:
            return found
        if default is None:
            raise DataError("model_field_missing", file=self.file, field=self.name(fields[0]))
        return default

    def layers(self, field: str = "num_hidden_layers") -> int:
        """The number of layers."""
        return self.whole(field, most=LAYERS_MOST)

    def flag(self, field: str, *, default: bool = False) -> bool:
        """A yes or no."""
        found = self.get(field)
        if found is None:
            return default
        if not isinstance(found, bool):
            raise self.bad(field, found, "true, false")
        return found

    def word(self, *fields: str) -> str | None:
        """The first of these that is there, as a text."""
        for field in fields:
            found = self.get(field)
            if found is not None:
                if not isinstance(found, str):
                    raise self.bad(field, found, "a text")
                return found
        return None

    def words(self, field: str, count: int | None = None) -> tuple[str, ...] | None:
        """A list of texts; `count` of them. DataError `model_fields_differ` where there are others."""
        found = self.get(field)
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.bad(field, found, "a list of texts")
        if count is not None and len(found) != count:
            raise self.differ(f"len({self.name(field)})", len(found), self.name("num_hidden_layers"), count)
        return tuple(found)

    def numbers(self, field: str) -> tuple[int, ...] | None:
        """A list of whole numbers."""
        found = self.get(field)
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
            raise self.bad(field, found, "a list of whole numbers")
        return tuple(found)

    def inner(self, field: str) -> Fields | None:
        """An object within."""
        found = self.get(field)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise self.bad(field, found, "{...}")
        return Fields(found, self.file)

    def bad(self, field: str, value: object, wanted: str) -> DataError:
        """What to raise for a value that cannot be."""
        shown = str(value)
        if len(shown) > _SHOWN_CHARS:
            shown = shown[:_SHOWN_CHARS] + "..."
        return DataError("model_field_bad", file=self.file, field=self.name(field), value=shown, wanted=wanted)

    def differ(self, field: str, value: int, other: str, other_value: int) -> DataError:
        """What to raise for two values that do not go together."""
        return DataError(
            "model_fields_differ",
            file=self.file,
            field=self.name(field),
            value=value,
            other=self.name(other),
            other_value=other_value,
        )
