"""From what is told to a Run: whose figures stand where, what is said of it, what no run can be."""

from __future__ import annotations

from random import Random

import pytest

from nilometer.core.errors import DataError
from nilometer.core.record import Record
from nilometer.core.spec import Labels, Load
from nilometer.core.summary import Counts, Distribution, Throughput
from nilometer.sources.results.build import MOST_DAYS, Source, imported
from nilometer.sources.results.request import Seen, record
from nilometer.sources.results.told import Imported, Notes, Told

SOURCE = Source("gauge", "x.json", 7_000_000_000)


def made(told: Told, source: Source = SOURCE) -> Imported:
    return imported(told, source, Random(3))


def answered(*starts: float) -> list[Record]:
    """Each answered within half a second: 3 tokens, the first after 0.2 s, the last after 0.4."""
    seen = Seen(ttft_s=0.2, gaps_s=[0.1, 0.1], e2e_s=0.5, output_tokens=3, prompt_tokens=8, token_source="usage")
    return [record(place, seen._replace(start_s=start), Notes()) for place, start in enumerate(starts)]


def test_requests_on_one_clock_give_figures_by_our_definitions() -> None:
    own = {"ttft": Distribution(n=9, p50=99.0)}
    one = made(Told(notes=Notes(), records=answered(0.0, 1.0), placed=True, latency_ms=own, load=Load(concurrency=1)))
    summary = one.run.summary
    assert summary.latency_ms["ttft"].p50 == pytest.approx(200.0)
    assert summary.throughput.output_tokens_per_s == pytest.approx(6 / 1.5)
    assert summary.generator.achieved_over_asked == pytest.approx(2 / 3, rel=0.5)
    assert (summary.generator.verdict, summary.generator.shared_reads_share) == ("unknown", None)
    assert len(one.records) == 2


def test_requests_without_a_clock_give_only_what_each_has_by_itself() -> None:
    own = {"ttft": Distribution(n=9, p50=99.0), "connect": Distribution(n=9, p50=5.0)}
    told = Told(notes=Notes(), records=answered(0.0, 0.0), latency_ms=own, duration_s=10.0)
    told.throughput = Throughput(output_tokens_per_s=0.6)
    one = made(told)
    summary = one.run.summary
    assert summary.latency_ms["ttft"].p50 == pytest.approx(200.0)
    assert summary.latency_ms["connect"].p50 == 5.0
    assert (summary.throughput.output_tokens_per_s, summary.window.end_s, summary.timeline) == (0.6, 10.0, [])
    assert one.records == []


def test_a_rate_of_requests_follows_from_their_number() -> None:
    counts = Counts(started=None, ok=20, error=None, incomplete=None, cancelled=None, censored=None)
    assert made(Told(notes=Notes(), counts=counts, duration_s=10.0)).run.summary.throughput.requests_per_s == 2.0


def test_what_nobody_told_is_said() -> None:
    slugs = {finding.slug for finding in made(Told(notes=Notes())).run.findings}
    assert {"import_start_unknown", "import_load_unknown", "imported"} <= slugs
    known = made(Told(notes=Notes(), started_ns=9, load=Load(rate_per_s=1.0))).run
    assert {"import_start_unknown", "import_load_unknown"} & {finding.slug for finding in known.findings} == set()
    assert (known.start_known, known.load_known, known.phases.started_wall_ns) == (True, True, 9)


def test_a_start_that_nobody_told_is_that_of_the_file() -> None:
    run = made(Told(notes=Notes())).run
    assert (run.phases.started_wall_ns, run.start_known, run.load_known) == (7_000_000_000, False, False)


def test_its_verdict_is_marked_at_best() -> None:
    counts = Counts(started=1_000, ok=1_000)
    assert made(Told(notes=Notes(), counts=counts, duration_s=600.0)).run.verdict == "marked"
    failed = Counts(started=1_000, ok=900, error=100)
    run = made(Told(notes=Notes(), counts=failed, duration_s=600.0)).run
    assert (run.verdict, run.findings[0].slug) == ("inadmissible", "errors_over_limit")


def test_notes_name_the_tool_and_warnings_the_file() -> None:
    notes = Notes()
    notes.add("import_wall_clock")
    one = made(Told(notes=notes, version="0.3", started_ns=9, load=Load(concurrency=1)))
    (warned,) = one.warnings
    assert (warned.slug, warned.params) == ("import_wall_clock", {"file": "x.json", "tool": "gauge"})
    assert one.run.findings[-1].params == {"tool": "gauge 0.3", "file": "x.json"}
    assert (one.run.tool, one.run.tool_version, one.run.origin) == ("gauge", "0.3", "imported")


def test_labels_and_secrets() -> None:
    source = SOURCE._replace(labels=Labels(service="reed", extra={"token": "s3cret"}), model="org/n")
    run = made(Told(notes=Notes(), target="http://u:s3cret@h/v1?api_key=s3cret"), source).run
    assert "s3cret" not in repr(run.spec)
    assert (run.spec.labels.service, run.spec.model) == ("reed", "org/n")


@pytest.mark.parametrize(
    "told",
    [
        Told(notes=Notes(), records=answered(0.0, (MOST_DAYS + 1) * 86_400.0), placed=True),
        Told(notes=Notes(), records=answered(1e10), placed=True),
        Told(notes=Notes(), duration_s=1e7),
    ],
)
def test_moments_that_no_run_holds_are_refused(told: Told) -> None:
    with pytest.raises(DataError, match="result_span"):
        made(told)


def test_a_run_that_was_stopped_is_marked_so() -> None:
    run = made(Told(notes=Notes(), cut=True, counts=Counts(started=100, ok=100))).run
    assert "interrupted" in {finding.slug for finding in run.findings}
