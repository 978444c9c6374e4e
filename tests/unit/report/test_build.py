"""Documents of runs and groups, block by block; the whole screens are in tests/golden."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.environment import EngineFacts, Environment, ModelFacts
from nilometer.core.finding import Evidence, Finding
from nilometer.core.run import Health, Phases, Run
from nilometer.core.spec import Load, Spec
from nilometer.core.summary import (
    Counts,
    Distribution,
    Generator,
    Length,
    Lengths,
    Memory,
    Summary,
    Throughput,
    Verdict,
    Window,
)
from nilometer.report.build import group_document, run_document
from nilometer.report.document import Document, Facts, Foot, Lead, Note, Notes, Table
from nilometer.text.i18n import Catalogue

EN, ZH = Catalogue("en"), Catalogue("zh")
S = 1_000_000_000
SUMMARY = Summary(
    window=Window(start_s=0.0, end_s=180.0, rule="auto", steady=True),
    requests=Counts(started=1000, ok=1000),
    run_requests=Counts(started=1300, ok=1300),
    latency_from="sent",
    latency_ms={
        "ttft": Distribution(n=1000, p50=200.0, p95=480.0, p99=600.0),
        "tpot": Distribution(n=1000, p50=25.0, p95=26.0, p99=31.0),
        "e2e": Distribution(n=1000, p50=3150.0, p95=3700.0, p99=4000.0),
    },
    throughput=Throughput(output_tokens_per_s=650.0, input_tokens_per_s=2610.0, requests_per_s=5.0),
    lengths=Lengths(
        input=Length(mean=514.0),
        output=Length(mean=128.0),
        asked_input=Length(mean=512.0),
        asked_output=Length(mean=128.0),
        token_source={"usage": 1000},
    ),
    generator=Generator(verdict="fit", cpu_share=0.05, shared_reads_share=0.0, achieved_over_asked=1.0),
)
FEW = Finding(slug="too_few", kind="validity", severity="medium", params={"n": 35, "least": 50})
SHORT = Finding(slug="short_of_guide", kind="validity", severity="low", params={"warmup_s": 10.0, "measured_s": 30.0})
LIMITED = Finding(
    slug="generator_limited",
    kind="validity",
    severity="high",
    evidence=[Evidence(name="late_reads_share", value=0.09, unit="share")],
)


def made(
    summary: Summary = SUMMARY,
    spec: Spec | None = None,
    verdict: Verdict = "admissible",
    findings: tuple[Finding, ...] = (),
    level: str | None = None,
    interrupted: bool = False,
) -> Run:
    phases = Phases(
        started_wall_ns=1_786_699_613 * S,
        start_ns=0,
        measured_ns=60 * S,
        stop_ns=240 * S,
        end_ns=244 * S,
        interrupted=interrupted,
    )
    return Run(
        id="k3vac2mq7xbd",
        spec=spec or Spec(target="http://127.0.0.1:8000", load=Load(concurrency=16)),
        environment=Environment(engine=EngineFacts(name="vllm"), model=ModelFacts(id="m")),
        phases=phases,
        health=Health(),
        summary=summary,
        findings=list(findings),
        verdict=verdict,
        level=level,
    )


def changed(**fields: object) -> Summary:
    return msgspec.structs.replace(SUMMARY, **fields)


def lead(document: Document) -> Lead:
    block = document.blocks[0]
    assert isinstance(block, Lead)
    return block


def facts(document: Document) -> dict[str, str]:
    (block,) = (block for block in document.blocks if isinstance(block, Facts))
    return {fact.name: fact.value for fact in block.rows}


def notes(document: Document) -> list[Note]:
    return [note for block in document.blocks if isinstance(block, Notes) for note in block.rows]


def foot(document: Document) -> Foot:
    block = document.blocks[-1]
    assert isinstance(block, Foot)
    return block


def test_every_screen_has_the_same_order() -> None:
    document = run_document(made(findings=(SHORT,), verdict="marked"), EN)
    assert [type(block) for block in document.blocks] == [Lead, Table, Facts, Notes, Foot]
    assert [type(block) for block in run_document(made(), EN).blocks] == [Lead, Table, Facts, Foot]


def test_the_first_line_is_the_verdict_in_one_sentence() -> None:
    assert lead(run_document(made(), EN)) == Lead(
        text="Steady and admissible: 16 users get the first token in 480 ms (p95) and 40 tokens/s each; "
        "the service makes 650 tokens/s."
    )
    assert lead(run_document(made(), ZH)).text == (
        "已达稳态，结果可采信：16 路并发下首 token 时延 p95 为 480 ms，每路约 40 token/s；服务总吞吐 650 token/s。"
    )


def test_steady_is_said_only_where_it_was_judged() -> None:
    unjudged = changed(window=Window(start_s=0.0, end_s=10.0, rule="count"))
    assert lead(run_document(made(unjudged), EN)).text.startswith("Admissible: 16 users")
    marked = lead(run_document(made(verdict="marked", findings=(FEW,)), EN))
    assert marked.text.startswith("Marked, see the notes: 16 users")
    assert marked.tone == "trouble"


def test_one_user_is_no_users() -> None:
    alone = Spec(target="x", load=Load(concurrency=1))
    assert ": 1 user gets the first token" in lead(run_document(made(spec=alone), EN)).text


def test_an_open_loop_speaks_of_its_rate() -> None:
    spec = Spec(target="x", load=Load(rate_per_s=2.5))
    document = run_document(made(spec=spec), EN)
    assert ": at 2.5 requests/s users get the first token in 480 ms (p95)" in lead(document).text
    assert foot(document).commands == ["nilo measure --like k3vac2 --rate 5"]


def test_few_samples_show_in_the_sentence_too() -> None:
    latency = {"ttft": Distribution(n=30, p50=200.0, p95=480.0, marked=["p95"]), "tpot": SUMMARY.latency_ms["tpot"]}
    assert "480 ms* (p95)" in lead(run_document(made(changed(latency_ms=latency)), EN)).text


def test_without_streaming_the_sentence_is_of_whole_answers() -> None:
    latency = {"ttft": Distribution(), "tpot": Distribution(), "e2e": SUMMARY.latency_ms["e2e"]}
    text = lead(run_document(made(changed(latency_ms=latency)), EN)).text
    assert "16 users get the whole answer in 3.15 s (p50), 3.70 s (p95); the service makes 650 tokens/s." in text


def test_without_counted_tokens_the_sentence_is_of_requests() -> None:
    latency = {**SUMMARY.latency_ms, "tpot": Distribution()}
    summary = changed(latency_ms=latency, throughput=Throughput(requests_per_s=5.0))
    text = lead(run_document(made(summary), EN)).text
    assert "the first token in 480 ms and the whole answer in 3.70 s (p95); the service answers 5.0 requests/s." in text


def test_estimated_tokens_are_marked_wherever_they_show() -> None:
    lengths = msgspec.structs.replace(SUMMARY.lengths, token_source={"usage": 900, "estimated": 100})
    document = run_document(made(changed(lengths=lengths)), EN)
    assert "the service makes ~650 tokens/s" in lead(document).text
    told = facts(document)
    assert told["tokens/s"] == "~650 out, 2,610 in"
    assert told["output"] == "128 asked, ~128 got, from usage 900, estimated 100"


def test_a_limited_generator_stands_before_everything() -> None:
    summary = changed(generator=Generator(verdict="limited", cpu_share=0.99))
    document = run_document(made(summary, verdict="inadmissible", findings=(FEW, LIMITED)), EN)
    assert lead(document).text.startswith("Not admissible: the load generator was the limit (late reads")
    assert "its own, not the server's. Next: `nilo doctor`" in lead(document).text
    assert [note.slug for note in notes(document)] == ["too_few"], "what the first line told is not told again"
    assert foot(document).commands == ["nilo doctor"]


def test_a_missed_slo_is_in_the_first_line_and_beside_the_table() -> None:
    spec = Spec(target="x", slo="ttft_p95<=300ms,tpot_p95<=50ms,ttfa_p95<=1s", load=Load(concurrency=4))
    document = run_document(made(spec=spec), EN)
    assert lead(document).text.endswith("; the SLO is missed (ttft_p95<=300ms: 480 ms).")
    assert lead(document).tone == "trouble"
    assert facts(document)["SLO"] == (
        "ttft_p95<=300ms missed (480 ms), ttfa_p95<=1s not measured, tpot_p95<=50ms met (26.0 ms)"
    )
    assert "goodput" not in facts(document), "no goodput was counted"


def test_requests_are_told_by_outcome() -> None:
    counts = Counts(
        started=1000,
        ok=900,
        error=80,
        incomplete=10,
        cancelled=10,
        censored=4,
        errors={"http_5xx": 20, "timeout_total": 59},
    )
    told = facts(run_document(made(changed(requests=counts)), EN))["requests"]
    assert told == (
        "900 ok; 9 % failed: 59 timeout_total, 20 http_5xx, 1 error, 10 incomplete; 6 cancelled; "
        "4 cut at the drain limit"
    )


def test_what_was_not_measured_is_a_dash_in_every_fact() -> None:
    bare = changed(throughput=Throughput(), lengths=Lengths(), generator=Generator(), latency_ms={})
    told = facts(run_document(made(bare), EN))
    assert told["tokens/s"] == "- out, - in"
    assert told["requests/s"] == "-"
    assert told["input"] == "- asked, - got"
    assert told["output"] == "- asked, - got, not counted"
    assert told["generator"] == "not judged"
    assert "memory" not in told


def test_an_encoder_has_no_fact_on_answers() -> None:
    lengths = Lengths(input=Length(mean=20.0), asked_input=Length(mean=20.0), token_source={"none": 12})
    told = facts(run_document(made(changed(lengths=lengths)), EN))
    assert "output" not in told
    assert told["input"] == "20 asked, 20 got"


def test_the_generator_and_memory_say_what_they_saw() -> None:
    generator = Generator(verdict="fit", cpu_share=0.052, shared_reads_share=0.0004, achieved_over_asked=0.97)
    memory = Memory(server_rss_peak_bytes=2**30, device_used_peak_bytes=3 * 2**30, kv_used_peak_ratio=0.41)
    told = facts(run_document(made(changed(generator=generator, memory=memory)), EN))
    assert told["generator"] == "fit (CPU 5.2 %, shared reads <0.1 %, in flight 97 % of asked)"
    assert told["memory"] == "server 1.00 GiB peak, device 3.00 GiB peak, KV cache 41 % peak"


def test_what_the_server_told_is_one_line() -> None:
    told = {"running_mean": 3.5, "slots": 8.0, "waiting_mean": 0.0, "queue_mean_s": 0.412, "preemptions": 12.0}
    bare = {"running_mean": 31.25, "waiting_mean": None, "preemptions": 0.0}
    assert facts(run_document(made(changed(server=told)), EN))["server"] == (
        "3.50 of 8 slots busy, 0 waiting, 412 ms in its queue, 12 preemptions"
    )
    assert facts(run_document(made(changed(server=bare)), EN))["server"] == "31.2 running"
    assert "server" not in facts(run_document(made(changed(server={"prefix_hit_ratio": 0.5})), EN))


def test_a_reader_who_did_not_start_the_run_is_told_what_it_was_and_every_note() -> None:
    many = tuple(msgspec.structs.replace(SHORT, slug=slug, params=params) for slug, params in _SEVEN)
    document = run_document(made(findings=many, verdict="marked"), EN, conditions=True)
    assert list(facts(document).items())[:5] == [
        ("target", "http://127.0.0.1:8000"),
        ("model", "m"),
        ("engine", "vllm"),
        ("load", "closed loop, 16 in flight"),
        ("started", "2026-08-14 09:26:53 UTC"),
    ]
    assert len(notes(document)) == 7
    (block,) = (block for block in run_document(made(findings=many), EN).blocks if isinstance(block, Notes))
    assert len(block.rows) == 5
    assert block.rest == "2 more notes: `nilo runs show k3vac2`"


_SEVEN: list[tuple[str, dict[str, str | int | float | None]]] = [
    ("interrupted", {"ok": 3}),
    ("too_few", {"n": 3, "least": 50}),
    ("censored_over", {"share": 0.2, "drain_s": 60.0}),
    ("warmup_cut_long", {"cut_s": 100.0, "measured_s": 180.0}),
    ("tokens_estimated", {"share": 0.1}),
    ("prefix_cache_hit", {"share": 0.1}),
    ("clock_stepped", {"n": 1}),
]


def test_notes_come_gravest_first() -> None:
    document = run_document(made(findings=(SHORT, FEW), verdict="marked"), EN)
    assert [note.slug for note in notes(document)] == ["too_few", "short_of_guide"]
    assert notes(document)[1].step == "Next: `nilo measure --like k3vac2 --procedure guide` gives figures to keep"


@pytest.mark.parametrize(
    ("run", "commands"),
    [
        (made(), ["nilo measure --like k3vac2 -c 32"]),
        (made(findings=(SHORT,), verdict="marked"), ["nilo measure --like k3vac2 --procedure guide"]),
        (made(interrupted=True), ["nilo measure --like k3vac2"]),
        (
            made(changed(requests=Counts(started=9, ok=8, error=1, errors={"http_5xx": 1})), verdict="inadmissible"),
            ["nilo runs show k3vac2 --errors", "nilo measure --like k3vac2"],
        ),
    ],
    ids=["next load", "longer", "again", "failures"],
)
def test_the_foot_names_the_next_command(run: Run, commands: list[str]) -> None:
    assert foot(run_document(run, EN)).text == "archived as k3vac2mq7xbd"
    assert foot(run_document(run, EN)).commands == commands


def test_a_run_outside_the_archive_names_no_command_that_would_look_it_up() -> None:
    document = run_document(made(findings=(SHORT, FEW), verdict="marked"), EN, archived=False)
    assert foot(document) == Foot(text="not archived")
    assert [note.step for note in notes(document)] == ["Next: give a longer `--duration`, or more `--requests`", None]


def test_a_group_shows_its_loads_and_says_what_limits_them() -> None:
    runs = [made(level="1", findings=(FEW,)), made(level="4")]
    finding = Finding(
        slug="queue",
        kind="cause",
        severity="high",
        confidence="likely",
        params={"load": "4", "slots": 2, "concurrency": "4", "wait": 0.9},
        evidence=[Evidence(name="wait_share", value=0.9, unit="share", level="1 -> 4")],
    )
    document = group_document(runs, "groupgroupgr", finding, EN)
    assert lead(document).text == (
        "Likely: requests queue for a slot: at load 4 about 2 decode at a time, and 90 % of the TTFT is waiting."
    )
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "1,000", "200.0", "480.0", "25.0", "3.15", "40.0", "650"],
        ["4", "1,000", "200.0", "480.0", "25.0", "3.15", "40.0", "650"],
    ]
    told = notes(document)
    assert told[0].cause == "waiting in the TTFT 90 % at 1 -> 4"
    assert told[1].cause.startswith("at a load of 1: 35 requests")
    assert foot(document).text == "archived as group groupgroupgr (runs k3vac2, k3vac2)"


def test_a_group_whose_limit_is_not_known_says_so() -> None:
    document = group_document([made(level="1")], "g", None, EN)
    assert lead(document).text == "What limits the service is not yet known."


def test_an_inadmissible_run_stands_before_the_diagnosis_of_its_group() -> None:
    runs = [made(level="1"), made(level="8", verdict="inadmissible", findings=(LIMITED,))]
    finding = Finding(slug="not_yet_known", kind="note", severity="low")
    document = group_document(runs, "g", finding, EN)
    assert lead(document).text.startswith("Not admissible at a load of 8: the load generator was the limit")
    assert [note.cause for note in notes(document)] == ["what limits the service is not yet known"]
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    assert [row[0].mark for row in table.rows] == ["", "!"]
    assert table.legend == ["! not admissible"]
