"""JUnit XML of a refusal, and of texts that XML cannot hold: read back by a parser that knows neither."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.compare.family import TABLE
from nilometer.compare.verdict import Comparison, MetricVerdict
from nilometer.report.junit import junit_xml, refused_xml
from nilometer.text.i18n import Catalogue


def message(written: str) -> str | None:
    """Of the one error in it, as a reader of the file's bytes finds it."""
    (error,) = ElementTree.fromstring(written.encode()).iter("error")
    assert error.text == error.get("message") or "\r" in (error.get("message") or "")
    return error.get("message")


def test_a_refusal_is_one_case_with_an_error() -> None:
    root = ElementTree.fromstring(refused_xml("conditions_differ", 'not alike: load "<4>" & 8').encode())
    assert dict(root.attrib) == {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    (suite,) = root
    assert (suite.tag, suite.get("name"), suite.get("errors")) == ("testsuite", "nilometer", "1")
    (case,) = suite
    assert (case.get("classname"), case.get("name")) == ("nilometer", "conditions_differ")
    (error,) = case
    assert (error.tag, error.get("type")) == ("error", "conditions_differ")
    assert error.get("message") == error.text == 'not alike: load "<4>" & 8'


@pytest.mark.parametrize("bad", ["\x00", "\x08", "\x0b", "\x1b", "\x1f", "\ud800", "\udfff", "\ufffe", "\uffff"])
def test_what_xml_cannot_hold_is_shown_as_lost(bad: str) -> None:
    assert message(refused_xml("slug", f"a{bad}[31mb")) == "a\ufffd[31mb"


def test_what_xml_can_hold_stays() -> None:
    told = "tab\tline\nend 延迟 \U0001f30a \x7f"
    assert message(refused_xml("slug", told)) == told


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_makes_xml(told: str) -> None:
    ElementTree.fromstring(refused_xml(told, told).encode())


def test_a_verdict_with_such_words_is_xml_too() -> None:
    class Spoilt(Catalogue):
        def say(self, key: str, /, **params: object) -> str:
            return f"\x1b{super().say(key, **params)}\udc80"

    worse = MetricVerdict(metric="tpot_p50", ratio=1.1, ci=(1.07, 1.13), margin=0.05, verdict="REGRESSED")
    found = Comparison(verdict="REGRESSED", metrics=[worse], runs_a=["1"], runs_b=["2"], more_runs_needed=0)
    (failure,) = ElementTree.fromstring(junit_xml(found, TABLE, Spoilt("en")).encode()).iter("failure")
    assert (failure.text or "").startswith("\ufffdREGRESSED\ufffd: ")
