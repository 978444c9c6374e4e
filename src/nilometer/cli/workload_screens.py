"""What `nilo workload` shows: the shape of a file on the screen and as plain values, and what was written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import msgspec

from nilometer.core.finding import Evidence, Finding
from nilometer.report.document import Block, Cell, Column, Document, Fact, Facts, Foot, Lead, Note, Notes, Table
from nilometer.report.findings import cause, step
from nilometer.sources.reading import Problem, Reading
from nilometer.text import units
from nilometer.text.i18n import Catalogue
from nilometer.workload.entry import NS_PER_S, Batch, Entry, Head
from nilometer.workload.sample import REPRESENTATIVE_KS
from nilometer.workload.shape import Lengths, Shape

from .machine import head as object_head

FIRST_ROWS = 10
_PROBLEMS_TOLD = 5
_MOST_COLUMNS = 7
_MOST_LINES = 10
_BAR_COLUMNS = 8
_FULL, _PARTS = "█", " ▏▎▍▌▋▊▉"
ESTIMATE = "~"


class Opening:
    """The first usable rows."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def add(self, batch: Batch) -> None:
        """Take what is still missing."""
        self._entries += islice(batch.rows(), FIRST_ROWS - len(self._entries))

    def rows(self, first_ns: int | None) -> list[dict[str, object]]:
        """Their figures; offsets count from `first_ns`."""
        return [
            {
                "offset_s": None if entry.at_ns is None or first_ns is None else (entry.at_ns - first_ns) / NS_PER_S,
                "input_tokens": entry.input_tokens,
                "output_tokens": entry.output_tokens,
                "turns": entry.turns,
            }
            for entry in self._entries
        ]


def _read_object(reading: Reading) -> dict[str, object]:
    """What every object of a file that was read begins with: what could be used of it, and what could not."""
    return {
        **object_head("workload"),
        "format": reading.format.name,
        "records": reading.records,
        "usable": reading.usable,
        "skipped": dict(reading.skipped),
        "problems": [msgspec.to_builtins(problem) for problem in reading.problems],
        "problems_total": reading.problem_count,
    }


def inspect_object(reading: Reading, shape: Shape, first: Sequence[dict[str, object]]) -> dict[str, object]:
    """The machine form of an inspection (kind `workload`)."""
    arrivals = shape.arrivals
    return {
        **_read_object(reading),
        "first": list(first),
        "input_tokens": _lengths(shape.input_tokens),
        "output_tokens": _lengths(shape.output_tokens),
        "token_source": {
            "input": _token_source(shape.input_tokens, reading.guessed_input),
            "output": _token_source(shape.output_tokens, reading.guessed_output),
        },
        "arrivals": {
            "rate_per_s": arrivals.rate_per_s,
            "gap_cv": arrivals.gap_cv,
            "span_s": arrivals.span_s,
            "per_minute": _lengths(arrivals.per_minute),
            "sorted": arrivals.sorted,
        },
        "stamp_unit": None if arrivals.span_s is None else reading.format.unit,
        "turns": _lengths(shape.turns),
        "shared_prefix_share": shape.shared_prefix_share,
        "joint": _joint(shape),
        "quirks": reading.quirks,
    }


def _lengths(lengths: Lengths) -> dict[str, object]:
    return {"mean": lengths.mean, "p50": lengths.p50, "p95": lengths.p95, "max": lengths.max}


def _token_source(lengths: Lengths, guessed: int) -> str | None:
    if not lengths.n:
        return None
    return "stated" if not guessed else "estimated" if guessed >= lengths.n else "mixed"


def _joint(shape: Shape) -> list[dict[str, int]]:
    """The cells that hold any row: lengths up to the bounds, above half of them."""
    return [
        {"input_up_to": 1 << i, "output_up_to": 1 << j, "n": n}
        for i, line in enumerate(shape.joint)
        for j, n in enumerate(line)
        if n
    ]


def inspect_document(reading: Reading, shape: Shape, words: Catalogue) -> Document:
    """Verdict, joint distribution, facts, what cannot be read, what to do next."""
    blocks: list[Block] = [_lead(reading, words)]
    if any(map(any, shape.joint)):
        blocks.append(joint_table(shape, words))
    blocks.append(Facts(rows=_facts(reading, shape, words)))
    if reading.problems:
        blocks.append(_problems(reading, words))
    if reading.usable:
        blocks.append(_foot(reading, words))
    return Document(lang=words.lang, blocks=blocks)


def _lead(reading: Reading, words: Catalogue) -> Lead:
    told = words.say("screen.workload.lead", format=reading.format.name, records=reading.records, usable=reading.usable)
    return Lead(text=told, tone="trouble" if reading.problem_count or not reading.usable else "plain")


def joint_table(shape: Shape, words: Catalogue) -> Table:
    """Rows: input up to so many tokens with their part of all; columns: output up to so many, in percent of all."""
    by_output = _merged(list(zip(*shape.joint, strict=True)), _MOST_COLUMNS)
    by_input = _merged(list(zip(*(cells for _, cells in by_output), strict=True)), _MOST_LINES)
    total = sum(map(sum, shape.joint))
    most = max(sum(cells) for _, cells in by_input)
    heads = [
        Column(words.say("screen.workload.input"), "right"),
        Column("%", "decimal"),
        Column("", "left"),
        *(Column(f"≤{units.count(bound)}", "right") for bound, _ in by_output),
    ]
    rows = [
        [
            Cell(f"≤{units.count(bound)}"),
            Cell(units.fixed(100 * sum(cells) / total, 1)),
            Cell(bar(sum(cells) / most, _BAR_COLUMNS)),
            *(Cell(_share(n, total)) for n in cells),
        ]
        for bound, cells in by_input
    ]
    return Table(columns=heads, rows=rows, legend=[words.say("screen.workload.legend")])


def _share(n: int, total: int) -> str:
    """In percent of all; `·` where there is nothing."""
    share = 100 * n / total
    return "·" if not n else "<0.1" if share < 0.1 else units.fixed(share, 1)


def _merged(lines: Sequence[Sequence[int]], most: int) -> list[tuple[int, list[int]]]:
    """(upper bound, cells) of lines of bins, two of them in one, the empty ones at both ends left out."""
    pairs = [
        (1 << min(at + 1, len(lines) - 1), [a + b for a, b in zip(lines[at], lines[at + 1], strict=True)])
        for at in range(1, len(lines) - 1, 2)
    ]
    pairs[0] = (pairs[0][0], [a + b for a, b in zip(pairs[0][1], lines[0], strict=True)])
    pairs[-1] = (1 << (len(lines) - 1), [a + b for a, b in zip(pairs[-1][1], lines[-1], strict=True)])
    filled = [at for at, (_, cells) in enumerate(pairs) if any(cells)]
    kept = pairs[filled[0] : filled[-1] + 1]
    while len(kept) > most:
        kept[:2] = [(kept[1][0], [a + b for a, b in zip(kept[0][1], kept[1][1], strict=True)])]
    return kept


def bar(share: float, width: int) -> str:
    """A bar of eighths of a column, at least one where there is anything."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return _FULL * (eighths // 8) + (_PARTS[eighths % 8] if eighths % 8 else "")


def _facts(reading: Reading, shape: Shape, words: Catalogue) -> list[Fact]:
    arrivals = shape.arrivals
    told = [
        ("skipped", _skipped(reading, words)),
        ("problems", units.count(reading.problem_count) if reading.problem_count else None),
        ("input", _length_words(shape.input_tokens, bool(reading.guessed_input), words)),
        ("output", _length_words(shape.output_tokens, bool(reading.guessed_output), words)),
        ("arrivals", _arrivals(shape, words)),
        ("per_minute", _per_minute(arrivals.per_minute, words)),
        ("turns", _turns(shape, words)),
        ("prefix", None if shape.shared_prefix_share is None else units.percent(shape.shared_prefix_share)),
        ("stamps", None if arrivals.span_s is None else words.say(f"screen.workload.unit.{reading.format.unit}")),
        ("quirks", _list((words.say(f"screen.workload.quirk.{quirk}") for quirk in _quirks(reading, shape)), words)),
    ]
    return [Fact(words.say(f"screen.workload.fact.{name}"), value) for name, value in told if value]


def _quirks(reading: Reading, shape: Shape) -> list[str]:
    return [*reading.quirks, *([] if shape.arrivals.sorted else ["unsorted"])]


def _list(texts: object, words: Catalogue) -> str:
    return words.say("screen.list_join").join(texts)  # type: ignore[arg-type]


def _skipped(reading: Reading, words: Catalogue) -> str:
    return _list(
        (f"{units.count(n)} {words.say(f'screen.workload.skipped.{why}')}" for why, n in reading.skipped.most_common()),
        words,
    )


def _length_words(lengths: Lengths, guessed: bool, words: Catalogue) -> str | None:
    if not lengths.n:
        return None
    sign = ESTIMATE if guessed else ""
    figures = {"mean": units.mean(lengths.mean), "p50": units.mean(lengths.p50), "p95": units.mean(lengths.p95)}
    told = {name: sign + figure for name, figure in figures.items()}
    return words.say("screen.workload.lengths", **told, most=sign + units.count(lengths.max))


def _arrivals(shape: Shape, words: Catalogue) -> str | None:
    arrivals = shape.arrivals
    if arrivals.rate_per_s is None:
        return None
    cv = "-" if arrivals.gap_cv is None else units.fixed(arrivals.gap_cv, 2)
    return words.say(
        "screen.workload.arrivals", rate=units.rate(arrivals.rate_per_s), span=units.clock(arrivals.span_s), cv=cv
    )


def _per_minute(minutes: Lengths, words: Catalogue) -> str | None:
    if not minutes.n:
        return None
    return words.say(
        "screen.workload.per_minute",
        p50=units.mean(minutes.p50),
        p95=units.mean(minutes.p95),
        most=units.count(minutes.max),
    )


def _turns(shape: Shape, words: Catalogue) -> str | None:
    if not shape.turns_over_one:
        return None
    return words.say(
        "screen.workload.turns", mean=units.mean(shape.turns.mean), most=shape.turns.max, share=shape.turns_over_one
    )


def _problems(reading: Reading, words: Catalogue) -> Notes:
    rows = [_note(problem, reading.path, words) for problem in reading.problems[:_PROBLEMS_TOLD]]
    more = reading.problem_count - len(rows)
    return Notes(rows=rows, rest=words.say("screen.workload.more_problems", n=more) if more > 0 else None)


def _note(problem: Problem, path: Path, words: Catalogue) -> Note:
    params = problem.error(path).params
    told = words.say(f"error.{problem.slug}.what", **params), words.say(f"error.{problem.slug}.next", **params)
    return Note(slug=problem.slug, severity="high", cause=told[0], step=told[1])


def _foot(reading: Reading, words: Catalogue) -> Foot:
    return Foot(
        text=words.say("screen.workload.next"),
        lead=words.say("screen.next"),
        commands=[f"nilo workload sample {reading.path} -n 200 -o mix.toml"],
    )


def findings(head: Head) -> list[Finding]:
    """What is to be said of a sample: nothing, or that it is not representative."""
    off = {name: distance for name, distance in head.ks.items() if distance > REPRESENTATIVE_KS}
    if head.representative is not False:
        return []
    return [
        Finding(
            slug="sample_not_representative",
            kind="validity",
            severity="high",
            params={"limit": REPRESENTATIVE_KS, "margins": ", ".join(off), "rows": head.rows},
            evidence=[Evidence(name=f"ks_{name}", value=distance) for name, distance in off.items()],
        )
    ]


def _finding(finding: Finding, words: Catalogue) -> Note:
    """The finding with its margins by the names they have on the screen."""
    names = str(finding.params["margins"]).split(", ")
    margins = _list((words.say(f"screen.workload.margin.{name}") for name in names), words)
    told = msgspec.structs.replace(finding, params={**finding.params, "margins": margins})
    return Note(slug=told.slug, severity=told.severity, cause=cause(told, words), step=step(told, words))


def written_object(reading: Reading, head: Head, output: Path) -> dict[str, object]:
    """The machine form of what was written."""
    return {
        **_read_object(reading),
        "quirks": reading.quirks,
        "written": {"file": str(output), "data": head.data, "rows": head.rows, "sha256": head.sha256},
        "text": head.text,
        "seed": head.seed,
        "ks": head.ks,
        "representative": head.representative,
        "findings": [msgspec.to_builtins(finding) for finding in findings(head)],
    }


def written_document(reading: Reading, head: Head, output: Path, words: Catalogue) -> Document:
    """What was written, how near it is to its source, what of the texts is in it."""
    found = findings(head)
    lead = words.say(
        "screen.workload.written", rows=head.rows, source=head.source_rows, format=reading.format.name, file=str(output)
    )
    margins = [
        Fact(words.say(f"screen.workload.margin.{name}"), f"KS {units.fixed(distance, 3)}")
        for name, distance in head.ks.items()
    ]
    facts = [*margins, Fact(words.say("screen.workload.fact.text"), words.say(f"screen.workload.text.{head.text}"))]
    skipped = _skipped(reading, words)
    facts += [Fact(words.say("screen.workload.fact.skipped"), skipped)] if skipped else []
    facts.append(Fact("sha256", head.sha256[:16]))
    blocks: list[Block] = [Lead(text=lead, tone="trouble" if found else "plain"), Facts(rows=facts)]
    if found:
        blocks.append(Notes(rows=[_finding(each, words) for each in found]))
    return Document(lang=words.lang, blocks=blocks)
