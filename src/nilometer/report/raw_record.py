"""One request as one JSON object: the raw record of the contract, one a line."""

from __future__ import annotations

import msgspec

from nilometer.core.record import Record
from nilometer.metrics.request import shown_ms

_OPTIONAL = ("text", "reasoning", "tool_arguments")
_INTERNAL = ("frames", *_OPTIONAL)


def record_object(record: Record) -> dict[str, object]:
    """The contract's raw record: every key there, null where it was not measured; texts only where they were kept."""
    told = {name: getattr(record, name) for name in record.__struct_fields__ if name not in _INTERNAL}
    told |= shown_ms(record)
    told["frames"] = [[f.kernel_ns, f.user_ns, f.tokens, f.shared_read] for f in record.frames]
    told |= {name: value for name in _OPTIONAL if (value := getattr(record, name)) is not None}
    return told


def record_line(record: Record) -> bytes:
    """The same as a line of JSON, line feed included."""
    return msgspec.json.encode(record_object(record)) + b"\n"
