"""A Hugging Face `config.json` to the shape it describes; what it leaves unsaid is its family's default."""

from __future__ import annotations

from pathlib import Path

from nilometer.plan.model.shape import Shape

from .architectures import language_part, shape_of
from .opened import read_fields
from .quantisation import published_precision


def read_config(path: Path) -> tuple[Shape, str | None]:
    """The shape, and the precision that a `quantization_config` in it names.

    DataError: `file_unreadable`, `model_json_broken`, `architecture_unknown`, `model_field_missing`,
    `model_field_bad`, `model_fields_differ`, `model_header_too_large`.
    """
    fields = read_fields(path)
    name = fields.word("_name_or_path") or path.resolve().parent.name
    return shape_of(fields, name), published_precision(language_part(fields))
