"""A comparison as JUnit XML: one test case a judged figure, so that a pipeline shows which one is worse.

The form is the one that Jenkins, GitLab and GitHub's readers take: testsuites, testsuite, testcase, failure, error,
skipped.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from nilometer.compare.family import Family
from nilometer.compare.verdict import Comparison, MetricVerdict
from nilometer.text.i18n import Catalogue

from .comparison import figure_of, name_of

SUITE = "nilometer"
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write, escaped neither (its production `Char`): control characters, lone surrogates."""


def junit_xml(comparison: Comparison, family: Family, words: Catalogue) -> str:
    """REGRESSED is a failure; UNDECIDED is skipped, which fails nothing and hides nothing."""
    rows = {row.name: row for row in family}
    judged = [one for one in comparison.metrics if one.verdict is not None]
    counts = {
        "tests": str(len(judged)),
        "failures": str(sum(one.verdict == "REGRESSED" for one in judged)),
        "errors": "0",
        "skipped": str(sum(one.verdict == "UNDECIDED" for one in judged)),
    }
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", {"name": SUITE, **counts})
    for one in judged:
        case = SubElement(suite, "testcase", {"classname": SUITE, "name": name_of(rows[one.metric], words)})
        _outcome(case, one, figure_of(one, rows[one.metric], words), words)
    return _written(root)


def refused_xml(slug: str, told: str) -> str:
    """A comparison that came to nothing: one test case by the error's slug, or the word, an error with its sentence."""
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", {"name": SUITE, **counts})
    case = SubElement(suite, "testcase", {"classname": SUITE, "name": slug})
    SubElement(case, "error", {"message": told, "type": slug}).text = told
    return _written(root)


def _written(root: Element) -> str:
    """The file; a character that would make it no XML is shown as U+FFFD."""
    for one in root.iter():
        one.attrib.update({name: _NO_XML.sub("\ufffd", value) for name, value in one.attrib.items()})
        one.text = one.text and _NO_XML.sub("\ufffd", one.text)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _outcome(case: Element, one: MetricVerdict, told: str, words: Catalogue) -> None:
    word = words.say(f"screen.comparison.{one.verdict}")
    if one.verdict == "REGRESSED":
        SubElement(case, "failure", {"message": told, "type": "REGRESSED"}).text = f"{word}: {told}"
    elif one.verdict == "UNDECIDED":
        SubElement(case, "skipped", {"message": told})
    else:
        SubElement(case, "system-out").text = f"{word}: {told}"
