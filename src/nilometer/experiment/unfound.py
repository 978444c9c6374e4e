"""Whether a user's own protocol found in the answers of a run what it looks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nilometer.core.finding import Finding
from nilometer.core.record import Record
from nilometer.core.spec import Spec
from nilometer.wire.dialects import spoken
from nilometer.wire.unfound import SLUG, places_not_found, seen_in


class Witness:
    """Sees the records of a run go by. Without a protocol it looks at nothing."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._streamed = bool(spec.protocol) and spoken(spec.api, spec.protocol).asks_stream(spec.stream)
        self._answered = False
        self._seen: set[str] = set()

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records."""
        for record in records:
            if self._spec.protocol and record.status == 200 and record.outcome in ("ok", "incomplete"):
                self._answered = True
                text = not self._streamed or record.first_token_ns is not None
                self._seen |= seen_in(record, text=text, ended=record.outcome == "ok")
            yield record

    def told(self, before: Iterable[Finding]) -> list[Finding]:
        """What the probe told, its word on the places replaced by what the whole run showed, if it showed anything."""
        if not self._answered:
            return list(before)
        own = places_not_found(self._spec.protocol, self._seen, streamed=self._streamed)
        return [*(finding for finding in before if finding.slug != SLUG), *own]
