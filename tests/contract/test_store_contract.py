"""What every store promises, on each store there is: what goes in comes out, whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import int64, make_record, make_records, make_run, make_spec, make_summary

from nilometer.archive import codec, frames
from nilometer.archive.protocol import ALL, Archive, Filter, Note, Ref
from nilometer.core.errors import ArchiveError, SpecError
from nilometer.core.group import Group
from nilometer.core.record import Frames, Record
from nilometer.core.run import FORMAT, Phases, Run
from nilometer.core.telemetry import Look, Telemetry

GROUP = Group(id="groupgroup22", type="sweep", started_wall_ns=7, spec='target = "embedded"\n', parent="p")

SEEN = [Look(5, 9, "vllm:num_requests_running 3"), Look(10, 12, fault="http_503")]


def run_at(second: int, run_id: str, **fields: object) -> Run:
    phases = Phases(started_wall_ns=second * 10**9, start_ns=0, measured_ns=1, stop_ns=2, end_ns=3)
    return make_run(run_id, phases=phases, **fields)


def slug_of(action: Callable[[], object]) -> str:
    with pytest.raises((ArchiveError, SpecError)) as caught:
        action()
    return caught.value.slug


def test_a_run_and_its_records_come_back(archive: Archive) -> None:
    run, records = make_run(group="g", role="a", level="16", order=3), list(make_records(40))
    archive.put(run, records)
    assert archive.get(run.id) == run
    assert list(archive.records(run.id)) == records


def test_what_was_seen_beside_the_records_comes_back(archive: Archive) -> None:
    told = Telemetry(looks=SEEN, host={"at": int64(1, 2, 3), "server_cpu": int64(-1, 5, 5)})
    archive.put(make_run(), [], told)
    archive.put(make_run("other"), [])
    assert archive.telemetry(make_run().id) == told
    assert archive.telemetry("other") == Telemetry(looks=[])
    assert slug_of(lambda: archive.telemetry("nobody")) == "run_unknown"
    assert archive.check().problems == []


def test_a_run_without_records_comes_back(archive: Archive) -> None:
    archive.put(make_run(), [])
    assert list(archive.records(make_run().id)) == []


def test_records_larger_than_a_row_come_back(archive: Archive) -> None:
    noise = Frames(user=Random(1).randbytes(9_000_000))
    records = [make_record(0, frames=noise), make_record(1, text="首" * 3_000_000), make_record(2)]
    archive.put(make_run(), records)
    assert list(archive.records(make_run().id)) == records


def test_records_are_taken_and_given_one_segment_at_a_time(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    encoded: list[tuple[int, int]] = []
    decoded: list[int] = []

    def counted() -> Iterator[Record]:
        for seq in range(20):
            made.append(seq)
            yield make_record(seq)

    def encode(batch: list[Record]) -> tuple[str, bytes]:
        encoded.append((len(batch), len(made)))
        return codec.COLUMNS, b"%d" % len(encoded)

    def decode(_name: str, blob: bytes) -> list[Record]:
        decoded.append(int(blob))
        return [make_record(int(blob) * 5 - 5 + i) for i in range(5)]

    weight = frames.weight(make_record(0).frames) + 256
    monkeypatch.setattr(codec, "SEGMENT_WEIGHT_BYTES", 5 * weight)
    monkeypatch.setattr(codec, "encode", encode)
    monkeypatch.setattr(codec, "decode", decode)
    archive.put(make_run(), counted())
    assert encoded == [(5, 5), (5, 10), (5, 15), (5, 20)]
    records = archive.records(make_run().id)
    assert [record.seq for record in itertools.islice(records, 6)] == list(range(6))
    assert decoded == [1, 2]
    assert [record.seq for record in records] == list(range(6, 20))


def test_nothing_stays_of_a_run_whose_records_broke_off(archive: Archive) -> None:
    def broken() -> Iterator[Record]:
        yield from make_records(10)
        raise RuntimeError("the journal ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        archive.put(make_run(), broken())
    assert archive.list_runs() == []
    archive.put(make_run(), make_records(2))
    assert archive.check() == (1, 2, [])


def test_a_run_is_put_once(archive: Archive) -> None:
    archive.put(make_run(), make_records(2))
    assert slug_of(lambda: archive.put(make_run(), make_records(5))) == "run_exists"
    assert len(list(archive.records(make_run().id))) == 2


UNSTORABLE: dict[str, tuple[Run, list[Record]]] = {
    "text in a record": (make_run(), [make_record(0, server={"lone surrogate": "\ud800"})]),
    "text of the run": (make_run(level="\ud800"), []),
    "a number beyond 64 bits": (make_run(order=2**70), []),
}


@pytest.mark.parametrize(("run", "records"), UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_what_no_archive_can_hold_is_refused_whole(archive: Archive, run: Run, records: list[Record]) -> None:
    assert slug_of(lambda: archive.put(run, records)) == "run_unstorable"
    assert archive.list_runs() == []


def test_an_unknown_run_is_refused_everywhere(archive: Archive) -> None:
    actions: tuple[Callable[[], object], ...] = (
        lambda: archive.get("nope"),
        lambda: archive.records("nope"),
        lambda: archive.row("nope"),
        lambda: archive.remove("nope"),
        lambda: archive.tag("base", "nope"),
        lambda: archive.resolve("nope"),
        lambda: archive.resolve(""),
        lambda: archive.resolve("latest"),
    )
    assert [slug_of(action) for action in actions] == ["run_unknown"] * len(actions)


def test_a_run_of_a_newer_format_is_refused(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr("nilometer.archive.rows.FORMAT", FORMAT + 1)
        archive.put(make_run(format=FORMAT + 1), [])
    assert slug_of(lambda: archive.get(make_run().id)) == "run_newer"
    assert [row.id for row in archive.list_runs()] == [make_run().id]


def test_a_group_comes_back_and_may_be_put_again_without_losing_its_tag(archive: Archive) -> None:
    archive.put_group(GROUP)
    archive.put_group(replace(GROUP, spec=None))
    assert archive.get_group(GROUP.id) == replace(GROUP, spec=None)
    assert slug_of(lambda: archive.get_group("other")) == "group_unknown"


def test_runs_of_a_group_come_in_their_order(archive: Archive) -> None:
    runs = [
        make_run(f"{order}" * 12, group=GROUP.id, level=level, order=order) for order, level in ((2, "4"), (1, "8"))
    ]
    for run in runs:
        archive.put(run, [])
    archive.put_group(GROUP)
    archive.put(make_run("x" * 12, group="other"), [])
    assert archive.find(GROUP.id) == runs[::-1]
    assert archive.find(GROUP.id, "4") == runs[:1]
    assert archive.find(GROUP.id, "16") == archive.find("nobody") == []


def test_the_list_has_the_newest_first_with_their_key_figures(archive: Archive) -> None:
    archive.put(run_at(20, "b" * 12, spec=make_spec(service="chat")), make_records(3))
    archive.put(run_at(30, "c" * 12, summary=make_summary(None), group="g"), [])
    archive.put(run_at(10, "a" * 12, spec=make_spec(service="chat"), verdict="marked"), [])
    archive.tag("base", "b" * 12)
    rows = archive.list_runs()
    assert [row.id[0] for row in rows] == ["c", "b", "a"]
    assert (rows[1].ttft_p95_ms, rows[1].tpot_p95_ms, rows[1].e2e_p95_ms) == (480.125, 25.9, None)
    assert (rows[1].output_tokens_per_s, rows[1].records, rows[1].tags) == (650.5, 3, ["base"])
    assert (rows[1].service, rows[1].target, rows[1].model) == ("chat", "http://127.0.0.1:8000/v1", "llama")
    assert (rows[1].concurrency, rows[1].rate_per_s, rows[1].started_wall_ns) == (16, None, 20 * 10**9)
    assert (rows[0].ttft_p95_ms, rows[0].group, rows[2].verdict) == (None, "g", "marked")
    assert [row.id[0] for row in archive.list_runs(2)] == ["c", "b"]
    assert [row.id[0] for row in archive.list_runs(only=Filter(service="chat"))] == ["b", "a"]
    assert [row.id[0] for row in archive.list_runs(only=Filter(group="g"))] == ["c"]


FILTERS: dict[str, tuple[Filter, str]] = {
    "all": (ALL, "edcba"),
    "service": (Filter(service="chat"), "edcb"),
    "a part of the model": (Filter(model="LLAMA-3"), "ed"),
    "no pattern": (Filter(model="llama_3"), ""),
    "no other pattern": (Filter(model="%"), ""),
    "a tag": (Filter(tag="base"), "b"),
    "a tag of the group": (Filter(tag="whole"), "dc"),
    "no such tag": (Filter(tag="nope"), ""),
    "verdict": (Filter(verdict="marked"), "d"),
    "origin": (Filter(origin="simulated"), "c"),
    "since": (Filter(since_ns=3 * 10**9), "edc"),
    "until": (Filter(until_ns=3 * 10**9), "ba"),
    "between": (Filter(since_ns=2 * 10**9, until_ns=4 * 10**9), "cb"),
    "group": (Filter(group=GROUP.id), "dc"),
    "several": (Filter(service="chat", model="llama", group=GROUP.id, verdict="admissible"), "c"),
    "text that is no Unicode": (Filter(service="\ud800"), ""),
}


def put_history(archive: Archive) -> None:
    """Five runs a second apart; the third and the fourth are a group."""
    chat = replace(make_spec(service="chat", service_version="1.1", quantisation="q4_0"), model="meta/Llama-3.1-8B")
    old = replace(make_spec(service="chat", service_version="1.0"), model="llama")
    archive.put_group(GROUP)
    archive.put(run_at(1, "a"), [])
    archive.put(run_at(2, "b", spec=old, summary=make_summary(100.0), condition_hash="c0ffee"), [])
    archive.put(run_at(3, "c", spec=old, group=GROUP.id, level="4", origin="simulated"), [])
    archive.put(run_at(4, "d", spec=chat, group=GROUP.id, level="8", verdict="marked"), [])
    archive.put(run_at(5, "e", spec=chat, summary=make_summary(None)), [])
    archive.tag("base", "b")
    archive.tag_group("whole", GROUP.id)


def test_a_list_of_those_asked_for(archive: Archive) -> None:
    put_history(archive)
    found = {name: "".join(row.id for row in archive.list_runs(only=only)) for name, (only, _) in FILTERS.items()}
    assert found == {name: wanted for name, (_, wanted) in FILTERS.items()}
    assert [row.id for row in archive.list_runs(2, Filter(service="chat"))] == ["e", "d"]


def test_a_series_is_the_history_of_a_service(archive: Archive) -> None:
    put_history(archive)
    places = [("latency_ms", "ttft", "p95"), ("throughput", "output_tokens_per_s", "value"), ("nowhere", "x", "y")]
    points = archive.series(places, Filter(service="chat"))
    assert [(point.id, point.figures) for point in points] == [
        ("b", (100.0, 650.5, None)),
        ("c", (480.125, 650.5, None)),
        ("d", (480.125, 650.5, None)),
        ("e", (None, 650.5, None)),
    ]
    first, third = points[0], points[2]
    assert (first.condition_hash, first.service_version, first.definitions) == ("c0ffee", "1.0", 1)
    assert (first.started_wall_ns, first.concurrency, first.rate_per_s, first.group) == (2 * 10**9, 16, None, None)
    assert (third.group, third.level, third.quantisation, third.model) == (GROUP.id, "8", "q4_0", "meta/Llama-3.1-8B")
    assert archive.series([], Filter(service="nobody")) == []


def test_a_ref_is_latest_then_a_tag_then_an_id_then_a_prefix(archive: Archive) -> None:
    archive.put(run_at(1, "abc"), [])
    archive.put(run_at(2, "xyz234"), [])
    archive.tag("abcdef", "xyz234")
    archive.put(run_at(3, "abcdef"), [])
    assert archive.resolve("latest") == "abcdef"
    assert archive.resolve("abcdef") == "xyz234"
    assert archive.resolve("abc") == "abc"
    assert archive.resolve("abcd") == "abcdef"
    assert archive.resolve("x") == "xyz234"
    assert slug_of(lambda: archive.resolve("a%")) == "run_unknown"


def test_an_ambiguous_prefix_lists_its_candidates(archive: Archive) -> None:
    for second in range(8):
        archive.put(run_at(second, f"ab{second}"), [])
    with pytest.raises(SpecError) as few:
        archive.remove("ab0")
        archive.remove("ab1")
        archive.resolve("ab")
    assert few.value.slug == "run_ambiguous"
    assert few.value.params == {"run": "ab", "candidates": "ab7, ab6, ab5, ab4, ab3, ab2, ..."}
    archive.remove("ab2")
    with pytest.raises(SpecError) as all_told:
        archive.resolve("a")
    assert all_told.value.params["candidates"] == "ab7, ab6, ab5, ab4, ab3"


def test_a_group_is_no_run(archive: Archive) -> None:
    archive.put_group(GROUP)
    archive.put(make_run(group=GROUP.id), [])
    assert slug_of(lambda: archive.resolve(GROUP.id)) == "run_is_group"
    assert slug_of(lambda: archive.resolve(GROUP.id[:2])) == "run_is_group"


def put_in_groups(archive: Archive) -> None:
    """Groups `abg` (two runs) and `xg` (one, the oldest), one without runs; a run of none, which is the newest."""
    for group in ("abg", "xg", "abempty"):
        archive.put_group(replace(GROUP, id=group))
    for second, run_id, group in ((2, "ab2", "abg"), (3, "c3", "abg"), (1, "x1", "xg")):
        archive.put(run_at(second, run_id, group=group), [])
    archive.put(run_at(4, "d4"), [])


@pytest.mark.parametrize(
    ("ref", "either", "run", "group"),
    [
        ("latest", ("run", "d4"), "d4", "abg"),
        ("abg", ("group", "abg"), "run_is_group", "abg"),
        ("ab2", ("run", "ab2"), "ab2", "group_unknown"),
        ("ab", "run_ambiguous", "ab2", "abg"),
        ("x", "run_ambiguous", "x1", "xg"),
        ("xg", ("group", "xg"), "run_is_group", "xg"),
        ("abe", "run_unknown", "run_unknown", "group_unknown"),
        ("abempty", "run_unknown", "run_unknown", "group_unknown"),
        ("", "run_unknown", "run_unknown", "group_unknown"),
        ("c", ("run", "c3"), "c3", "group_unknown"),
    ],
)
def test_a_ref_means_a_run_or_a_group_as_the_command_takes(
    archive: Archive, ref: str, either: tuple[str, str] | str, run: str, group: str
) -> None:
    put_in_groups(archive)
    assert said(lambda: archive.resolve_either(ref)) == either
    assert said(lambda: archive.resolve(ref)) == run
    assert said(lambda: archive.resolve_group(ref)) == group


def test_a_run_and_a_group_that_begin_alike_are_both_candidates(archive: Archive) -> None:
    put_in_groups(archive)
    with pytest.raises(SpecError) as caught:
        archive.resolve_either("ab")
    assert caught.value.params == {"run": "ab", "candidates": "ab2, abg"}


def test_the_latest_of_either_is_the_group_of_the_newest_run(archive: Archive) -> None:
    put_in_groups(archive)
    archive.put(run_at(5, "e5", group="xg"), [])
    assert said(lambda: archive.resolve_either("latest")) == ("group", "xg")
    assert archive.resolve("latest") == "e5"
    archive.put(run_at(6, "f6", group="never put"), [])
    assert said(lambda: archive.resolve_either("latest")) == ("run", "f6")
    assert archive.resolve_group("latest") == "xg"


def test_no_group_is_the_latest_where_no_run_has_one(archive: Archive) -> None:
    archive.put(run_at(1, "abc"), [])
    assert slug_of(lambda: archive.resolve_group("latest")) == "group_unknown"


def said(action: Callable[[], object]) -> object:
    """What it answers, or the slug of its refusal."""
    try:
        return action()
    except SpecError as fault:
        return fault.slug


def test_a_tag_moves(archive: Archive) -> None:
    archive.put_group(GROUP)
    for run_id in ("one", "two"):
        archive.put(make_run(run_id, group=GROUP.id), [])
    assert archive.tag("base", "one") is None
    assert archive.tag("base", "two") == Ref("run", "one")
    assert archive.resolve("base") == "two"
    assert archive.row("one").tags == []
    assert archive.tag_group("base", GROUP.id) == Ref("run", "two")
    assert archive.resolve_group("base") == GROUP.id
    assert archive.remarks(Ref("group", GROUP.id)).tags == ["base"]
    assert archive.untag("base") == Ref("group", GROUP.id)
    assert slug_of(lambda: archive.untag("base")) == "tag_unknown"
    assert slug_of(lambda: archive.tag_group("base", "nobody")) == "group_unknown"


@pytest.mark.parametrize("name", ["one", GROUP.id])
def test_an_id_of_another_is_no_tag(archive: Archive, name: str) -> None:
    archive.put_group(GROUP)
    for run_id in ("one", "two"):
        archive.put(make_run(run_id, group=GROUP.id), [])
    assert slug_of(lambda: archive.tag(name, "two")) == "tag_invalid"
    assert archive.tag("two", "two") is None
    assert archive.resolve("one") == "one"


@pytest.mark.parametrize(
    "name", ["", "latest", "a b", "-x", "a\tb", "x" * 65, "run.nilo", "a\u202eb", "a\u200bb", "\x9b0m", "\udcff"]
)
def test_what_could_be_taken_for_another_thing_is_no_tag(archive: Archive, name: str) -> None:
    archive.put(make_run(), [])
    assert slug_of(lambda: archive.tag(name, make_run().id)) == "tag_invalid"


@pytest.mark.parametrize("text", ["", " \n", "x" * 4001, "\udcff"])
def test_what_is_no_text_is_no_note(archive: Archive, text: str) -> None:
    archive.put(make_run("one"), [])
    assert slug_of(lambda: archive.note(Ref("run", "one"), Note(1, text))) == "note_invalid"


def test_notes_are_kept_in_order_and_go_with_their_run(archive: Archive) -> None:
    archive.put_group(GROUP)
    archive.put(make_run(group=GROUP.id), [])
    run, group = Ref("run", make_run().id), Ref("group", GROUP.id)
    archive.note(run, Note(9, "second"))
    archive.note(run, Note(8, "first: 首"))
    archive.note(group, Note(7, "of all"))
    assert archive.remarks(run) == ([], [(8, "first: 首"), (9, "second")])
    assert archive.remarks(group).notes == [Note(7, "of all")]
    assert archive.row(run.id).notes == 2
    archive.remove(run.id)
    assert archive.remarks(run) == archive.remarks(group) == ([], [])
    assert slug_of(lambda: archive.note(run, Note(1, "late"))) == "run_unknown"
    assert slug_of(lambda: archive.note(group, Note(1, "late"))) == "group_unknown"


def test_removing_takes_records_and_tags_along_and_nothing_else(archive: Archive) -> None:
    archive.put_group(GROUP)
    for run_id in ("one", "two"):
        archive.put(make_run(run_id, group=GROUP.id), make_records(3))
        archive.tag(f"tag-{run_id}", run_id)
    archive.remove("one")
    assert slug_of(lambda: archive.resolve("tag-one")) == "run_unknown"
    assert archive.resolve("tag-two") == "two"
    assert archive.get_group(GROUP.id) == GROUP
    assert archive.check() == (1, 3, [])
    archive.remove("two")
    assert slug_of(lambda: archive.get_group(GROUP.id)) == "group_unknown"
    assert archive.check() == (0, 0, [])


def test_pruning_takes_whole_lots_and_leaves_what_has_a_tag(archive: Archive) -> None:
    put_history(archive)
    archive.put(run_at(6, "f", spec=make_spec(service="chat")), make_records(20))
    archive.untag("whole")
    lots = archive.lots(keep=1)
    assert [lot.runs for lot in lots] == [["c", "d"], ["e"]]
    archive.tag("late", "d")
    assert [lot.runs for lot in archive.prune(lots)] == [["e"]]
    archive.untag("late")
    archive.prune(archive.lots(before_wall_ns=5 * 10**9))
    assert [row.id for row in archive.list_runs()] == ["f", "b"]
    assert slug_of(lambda: archive.get_group(GROUP.id)) == "group_unknown"
    assert archive.check() == (2, 20, [])


def test_pruned_records_leave_the_figures(archive: Archive) -> None:
    archive.put(make_run("a"), make_records(20))
    archive.put(make_run("b"), make_records(20))
    archive.put(make_run("c"), [])
    archive.tag("base", "b")
    (lot,) = archive.lots(records_only=True)
    assert (lot.runs, lot.records) == (["a"], 20)
    (whole,) = [lot for lot in archive.lots() if lot.runs == ["a"]]
    assert 300 < lot.size_bytes < whole.size_bytes - 1_000
    assert archive.prune([lot], records_only=True) == [lot]
    assert archive.lots(records_only=True) == []
    assert archive.get("a") == make_run("a")
    assert list(archive.records("a")) == []
    assert archive.check() == (3, 20, [])


def test_many_lots_are_weighed(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nilometer.archive.retention._AT_ONCE", 2)
    for second in range(5):
        archive.put(run_at(second, f"run{second}"), make_records(3))
    sizes = {lot.size_bytes for lot in archive.lots(records_only=True)}
    assert len(archive.lots()) == 5
    assert len(sizes) == 1
    assert sizes.pop() > 100


def test_a_summary_by_newer_definitions_takes_the_place_of_the_old_one(archive: Archive) -> None:
    old, other = make_run("old", definitions=0), make_run("other")
    for run in (old, other):
        archive.put(run, make_records(3))
    assert archive.outdated(1) == ["old"]
    new = replace(old, definitions=1, summary=make_summary(99.5), verdict="marked", findings=[])
    assert archive.resummarise(new)
    assert archive.get("old") == new
    assert archive.get("other") == other
    assert list(archive.records("old")) == list(make_records(3))
    assert archive.row("old").ttft_p95_ms == 99.5
    assert not archive.resummarise(replace(new, verdict="admissible"))
    assert not archive.resummarise(replace(new, id="nobody", definitions=9))
    assert (archive.get("old"), archive.outdated(1), archive.check().problems) == (new, [], [])
