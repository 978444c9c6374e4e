"""One pass over a file of requests: batches of what can be used, counts by reason of what cannot, and what is broken.

Well-formed rows that are no request to send are skipped and counted. Rows that cannot be read are problems with the
number of their line; reading goes on behind them, and the caller decides whether that will do.
"""

from __future__ import annotations

import csv
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from nilometer.core.errors import DataError
from nilometer.workload.entry import NS_PER_S, ROWS, UNKNOWN, Batch, Entry, Head, Ints, Row, batch
from nilometer.workload.prefix import BLOCK_TOKENS, Prefixes, text_blocks

from . import columns
from .documents import Elements
from .formats import JSON, Columns, Format, Reader, choose
from .lines import LINE_LIMIT_BYTES, Stream
from .mapped import Map, Mapped
from .row import FAULTS, Broken, Skipped, broken
from .sniff import Sniff, sniff
from .workload_file import read as read_row
from .workload_file import read_head

Decode = Callable[[Any], Any]

BATCH_BYTES = 8 << 20
"""A batch of texts ends where so much of the file is in it."""
MOST_PROBLEMS = 1_000
"""Told one by one; the others are counted."""
_DAY_NS = 86_400 * NS_PER_S
_CLOCKS = {"wall": (7_300 * _DAY_NS, _DAY_NS), "own": (0, 36_500 * _DAY_NS)}
"""The least stamp, and the greatest: for `wall` (after 1989) from now on, a day for clocks that differ."""

csv.field_size_limit(LINE_LIMIT_BYTES)


class Problem(msgspec.Struct, frozen=True):
    """A row that cannot be read: the slug is that of an error whose words take file, line and detail."""

    line: int
    slug: str
    detail: str

    def error(self, path: Path) -> DataError:
        """The same as an error."""
        return DataError(self.slug, file=str(path), line=self.line, detail=self.detail)


class Reading:
    """A file being read. Its counts are whole when `batches` has ended; each call of `batches` begins anew."""

    def __init__(
        self, path: Path, *, name: str | None = None, the_map: Map | None = None, now_ns: int | None = None
    ) -> None:
        self.path = path
        if path.suffix == ".toml" and name is None and the_map is None:
            head = read_head(path)
            self.path = path.with_name(head.data)
            self.seen, self.format = _workload(self.path, head)
        else:
            self.seen = sniff(path)
            self.format = choose(path, self.seen, name, the_map)
        least, most = _CLOCKS.get(self.format.clock, (-(1 << 62), 1 << 62))
        now_ns = time.time_ns() if now_ns is None else now_ns
        self._stamps = (least, most + now_ns if self.format.clock == "wall" else most)
        self._clear()

    def _clear(self) -> None:
        self.stream = Stream(self.path)
        self.records = self.usable = self.problem_count = 0
        self.guessed_input = self.guessed_output = self.without_output = 0
        self.skipped: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self._prefixes = Prefixes(self.format.block_tokens)

    @property
    def quirks(self) -> list[str]:
        """What is odd about the file and was coped with, as slugs."""
        found = [*self.stream.quirks, *self.format.quirks]
        if self.without_output and self.without_output < self.usable:
            found.append("output_length_optional")
        return [*found, "prefixes_bounded"] if self._prefixes.full else found

    def batches(self, only: frozenset[int] | None = None) -> Iterator[Batch]:
        """What can be used, in the order of the file; with `only` nothing but the rows that begin on these lines.

        Refuses `file_unreadable`, `file_piped`, `packed_broken`; at its end `map_absent` columns that no row had.
        """
        self._clear()
        if self.format.columns is not None and only is None:
            yield from self._chunks(self.format.columns)
        else:
            yield from self._rows(only)

    def _rows(self, only: frozenset[int] | None) -> Iterator[Batch]:
        held: list[Entry] = []
        held_bytes = 0
        reader = self.format.reader(self.seen)
        decode, pieces = self._pieces()
        last = None if only is None else max(only, default=0)
        for line, piece in pieces:
            if last is not None and line > last:
                break
            if only is None or line in only:
                held += self._read(reader, decode, piece, line)
                held_bytes += sum(map(len, piece)) if isinstance(piece, list) else len(piece or b"")
                while held and (len(held) >= ROWS or held_bytes >= BATCH_BYTES):
                    yield self._batch(held[:ROWS])
                    held, held_bytes = held[ROWS:], 0
        if held:
            yield self._batch(held)
        if only is None and isinstance(reader, Mapped):
            reader.check(self.path)

    def _pieces(self) -> tuple[Decode, Iterator[tuple[int, Any]]]:
        """What makes a row of a piece of the file, and the pieces with the lines they begin on."""
        if self.format.row is str and self.seen.layout != "array":
            return _text, self.stream.lines()
        if self.seen.layout == "csv":
            return self._table, self._csv_rows()
        decode: Decode = msgspec.json.Decoder(self.format.row).decode
        return decode, self.stream.lines() if self.seen.layout == "lines" else self._elements()

    def _elements(self) -> Iterator[tuple[int, bytes | None]]:
        elements = Elements()
        document = self.seen.layout == "document"
        yield from elements.split(_wrapped(self.stream.blocks()) if document else self.stream.blocks())
        if not elements.whole:
            self.trouble(elements.line, Broken("cut_off", ""))
        if elements.more:
            self.trouble(elements.line, Broken("json_broken", "more behind the end of the array"))

    def _csv_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Rows of a CSV, over several lines where quotes say so; the first is the header, and left out."""
        source = _Decoded(self)
        rows = csv.reader(source, strict=True)
        headed = False
        while True:
            source.begin()
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as fault:
                self.records += 1
                self.trouble(*source.retreat(fault))
                rows = csv.reader(source, strict=True)
                continue
            if not "".join(cells).strip() and len(cells) < 2:
                continue
            if headed:
                yield source.first, cells
            headed = True

    def _table(self, cells: list[str]) -> Any:
        header = self.seen.header
        if len(cells) != len(header):
            raise Broken("columns_wrong", f"{len(cells)} != {len(header)}")
        row = dict(zip(header, cells, strict=True))
        return row if self.format.row is None else msgspec.convert(row, self.format.row, strict=False)

    def _read(self, reader: Reader, decode: Decode, piece: Any, line: int) -> list[Entry]:
        """The requests of one row, counted; nothing and a problem where it cannot be read."""
        if piece is None:
            return self.over(line)
        try:
            found = reader(decode(piece), line)
        except FAULTS as fault:
            self.records += 1
            self.trouble(line, broken(fault))
            return []
        self.records += len(found)
        least, most = self._stamps
        entries = []
        for each in found:
            if isinstance(each, Skipped):
                self.skipped[each.reason] += 1
            elif each.at_ns is None or least <= each.at_ns <= most:
                entries.append(each)
            else:
                self._out_of_time(each.at_ns, line)
        return entries

    def _out_of_time(self, at_ns: int, line: int) -> None:
        future = at_ns > self._stamps[1] and self.format.clock == "wall"
        self.trouble(line, Broken("stamp_future" if future else "stamp_range", f"{at_ns / NS_PER_S:.15g} s"))

    def trouble(self, line: int, fault: Broken) -> None:
        """Note what is wrong with a row."""
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(line, fault.slug, fault.detail))

    def _batch(self, entries: list[Entry]) -> Batch:
        shared, root = [], []
        for entry in entries:
            self.guessed_input += entry.guessed_input
            self.guessed_output += entry.guessed_output
            self.without_output += entry.output_tokens is None
            if entry.hash_ids is not None:
                tokens, ids = self._prefixes.shared(entry.hash_ids, entry.input_tokens)
            elif entry.parts:
                tokens, ids = self._prefixes.shared(text_blocks(_whole(entry)), entry.input_tokens)
                force_setattr(entry, "hash_ids", tuple(ids))  # nobody else has seen it yet
            else:
                tokens, ids = UNKNOWN, []
            shared.append(tokens)
            root.append(ids[0] if ids else UNKNOWN)
        self.usable += len(entries)
        return batch(entries, shared, root)

    def _chunks(self, wanted: Columns) -> Iterator[Batch]:
        """A CSV of numbers in whole chunks; rows that the columns are not sure of are read one by one."""
        places = {name: self.seen.header.index(name) for name in wanted}
        plan = columns.Plan(len(self.seen.header), {places[name]: kind for name, kind in wanted.items()})
        reader = self.format.reader(self.seen)
        line, headed = 1, False
        for chunk in self.stream.chunks():
            if not chunk:
                self.over(line)
                line += 1
                continue
            if b"\r\n" in chunk:
                self.stream.quirks["crlf"] = None
            parsed = columns.parse(chunk, plan)
            values = [parsed.values[places[name]] for name in wanted]
            sure = parsed.sure & (values[0] >= self._stamps[0]) & (values[0] <= self._stamps[1])
            self.records += int(np.count_nonzero(sure))
            for place in np.flatnonzero(~sure).tolist():
                one = chunk[parsed.start[place] : parsed.stop[place]]
                if not headed and one.strip():
                    headed = True
                    continue
                entry = self._single(reader, one, line + place)
                if entry is not None:
                    sure[place] = True
                    read = (entry.at_ns, entry.input_tokens, entry.output_tokens)
                    for column, value in zip(values, read, strict=True):
                        column[place] = UNKNOWN if value is None else value
            yield from self._pieced(line + np.flatnonzero(sure), *(column[sure] for column in values))
            line += len(sure)

    def over(self, line: int) -> list[Entry]:
        """Note a line that is too long; it holds no request."""
        self.records += 1
        self.trouble(line, Broken("line_too_long", f"{LINE_LIMIT_BYTES >> 20} MB"))
        return []

    def _single(self, reader: Reader, text: bytes, line: int) -> Entry | None:
        if not text.strip():
            self.stream.quirks["blank_lines"] = None
            return None
        return next(iter(self._read(reader, self._cells, text, line)), None)

    def _cells(self, text: bytes) -> Any:
        try:
            cells = next(csv.reader([text.decode("utf-8")], strict=True))
        except csv.Error as fault:
            raise Broken("columns_wrong", str(fault)) from None
        return self._table(cells)

    def _pieced(self, line: Ints, at_ns: Ints, asked: Ints, answered: Ints) -> Iterator[Batch]:
        self.usable += len(line)
        for start in range(0, len(line), ROWS):
            stop = start + ROWS
            unknown = np.full(len(line[start:stop]), UNKNOWN)
            yield Batch(
                line[start:stop],
                at_ns[start:stop],
                asked[start:stop],
                answered[start:stop],
                np.ones_like(unknown),
                unknown,
                unknown,
            )


class _Decoded:
    """Lines of text for the csv module; a line that is no UTF-8 or too long is a problem, and left out.

    The lines of a row are kept until the next begins, so that a quote nobody closes costs one line, not all behind it.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._fresh = self._decoded(reading.stream.lines(blank=True))  # in a quoted text they count
        self._again: deque[tuple[int, str]] = deque()
        self._row: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._row.append(self._again.popleft() if self._again else next(self._fresh))
        return self._row[-1][1]

    def begin(self) -> None:
        """What comes now belongs to another row."""
        self._row.clear()

    @property
    def first(self) -> int:
        """The line on which the row begins."""
        return self._row[0][0]

    def retreat(self, fault: csv.Error) -> tuple[int, Broken]:
        """Which line is at fault for a row that cannot be read, and how; what stands behind that line comes again."""
        before = self._row if "end of data" in str(fault) else self._row[:-1]
        if not before:
            return self.first, Broken("columns_wrong", str(fault))
        at = _opening([text for _, text in before])
        self._again.extendleft(reversed(self._row[at + 1 :]))
        return self._row[at][0], Broken("quote_open", "")

    def _decoded(self, lines: Iterator[tuple[int, bytes | None]]) -> Iterator[tuple[int, str]]:
        for line, text in lines:
            if text is None:
                self._reading.over(line)
                continue
            try:
                yield line, _text(text) + "\n"
            except UnicodeDecodeError as fault:
                self._reading.records += 1
                self._reading.trouble(line, broken(fault))


def _opening(lines: Sequence[str]) -> int:
    """Which of the lines of a row opened the quote that is open behind them; the first where that is not clear."""
    opening: int | None = None
    for place, text in enumerate(lines):
        quotes = text.replace('""', "").count('"')
        if quotes:
            opening = place if (opening is None) == bool(quotes % 2) else None
    return opening or 0


def _workload(data: Path, head: Head) -> tuple[Sniff, Format]:
    """A workload file is known by its name, and what it holds by its head."""
    layout = Sniff(data.name, "lines", None)
    reads = Format("workload", JSON, lambda _: read_row, lambda _: True, clock="own", unit="s", row=Row)
    return layout, reads._replace(block_tokens=head.block_tokens or BLOCK_TOKENS)


def _text(line: bytes) -> str:
    return line.decode("utf-8")


def _whole(entry: Entry) -> str:
    return "\n".join(part.text or "" for part in entry.parts)


def _wrapped(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """One value that is no array, as an array of it."""
    yield b"["
    yield from blocks
    yield b"]"
