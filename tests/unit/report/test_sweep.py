"""The screen of a sweep: what it shows of a service that streams tokens, and of one whose answers come whole."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.report.test_build import EN, SUMMARY, ZH, made

from nilometer.core.run import Run
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.core.summary import Distribution, Throughput
from nilometer.report.document import Bars, Lead, Table
from nilometer.report.sweep import sweep_document
from nilometer.text.i18n import Catalogue


def level(n: int, *, tokens: bool) -> Run:
    summary = SUMMARY
    if not tokens:
        latency = {"ttft": Distribution(), "e2e": Distribution(n=100, p50=30.0, p95=40.0)}
        whole = Throughput(requests_per_s=32.0 * n, input_tokens_per_s=640.0 * n)
        summary = msgspec.structs.replace(SUMMARY, latency_ms=latency, throughput=whole)
    return made(summary=summary, level=str(n))


@pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])
def test_a_rate_of_conversations_is_no_rate_of_requests(words: Catalogue) -> None:
    spec = Spec(target="embedded", load=Load(rate_per_s=5.0), prompts=Prompts(turns="4"))
    document = sweep_document([made(summary=SUMMARY, spec=spec, level=str(n)) for n in (5, 10)], "g", words)
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    (lead,) = (block for block in document.blocks if isinstance(block, Lead))
    conversations, requests = (words.say(f"screen.{name}_unit") for name in ("conversations", "requests"))
    assert conversations in lead.text
    assert requests not in lead.text
    asked, came = table.columns[:2]
    assert (asked.title, came.unit) == (conversations, requests)


@pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])
def test_whole_answers_with_tokens_show_requests_beside_them(words: Catalogue) -> None:
    """As of a server that does not stream but counts."""
    counted = Throughput(requests_per_s=32.0, output_tokens_per_s=640.0)
    whole = msgspec.structs.replace(level(1, tokens=False).summary, throughput=counted)
    document = sweep_document([made(summary=whole, level="1")], "g", words)
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    (bars,) = (block for block in document.blocks if isinstance(block, Bars))
    units = [words.say(f"screen.{name}_unit") for name in ("tokens", "requests")]
    assert ([column.unit for column in table.columns[-2:]], bars.rows[0].text) == (units, "640")
    assert [cell.text for cell in table.rows[0][-2:]] == ["640", "32.0"]
    assert units[0] in bars.title


@pytest.mark.parametrize(("tokens", "columns"), [(True, ["TTFT p50", "TPOT p95"]), (False, ["E2E p50", "E2E p95"])])
@pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])
def test_latencies_and_throughput_are_those_that_were_seen(tokens: bool, columns: list[str], words: Catalogue) -> None:
    document = sweep_document([level(n, tokens=tokens) for n in (1, 2)], "g", words)
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    (bars,) = (block for block in document.blocks if isinstance(block, Bars))
    heads = [column.title for column in table.columns]
    assert set(columns) <= set(heads)
    assert ("TTFT p50" in heads) is tokens
    unit = words.say("screen.tokens_unit" if tokens else "screen.requests_unit")
    assert unit in bars.title
    assert [column.unit for column in table.columns if column.title == words.say("short.tokens_all")] == [unit]
    if not tokens:
        assert [bar.text for bar in bars.rows] == [row[-1].text for row in table.rows] == ["32.0", "64.0"]
