"""One finding in words: its cause, its evidence, its next step. `ref` is its run as a command takes it, None if no
command can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nilometer.core.errors import Param
from nilometer.core.finding import Evidence, Finding
from nilometer.text import units
from nilometer.text.i18n import Catalogue

_SEVERITY = {"high": 0, "medium": 1, "low": 2}
_KIND = {"validity": 0, "cause": 1, "remedy": 2, "note": 3}
_FIRST = "generator_limited"
"""Stands before all else: with it the figures are not the server's."""
ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM", "tgi": "TGI", "ollama": "Ollama"}
"""As their makers write them."""
_IN_SENTENCE = 3
"""Figures of evidence that a sentence can carry."""


def rank(finding: Finding) -> tuple[bool, int, int]:
    """Sorts the gravest first."""
    return finding.slug != _FIRST, _SEVERITY[finding.severity], _KIND[finding.kind]


def gravest(findings: Iterable[Finding]) -> Finding | None:
    """The finding that makes a run inadmissible: the generator's own, else the most severe on validity."""
    return min((finding for finding in findings if finding.kind == "validity"), key=rank, default=None)


def cause(finding: Finding, words: Catalogue, ref: str | None = None) -> str:
    """What was found, in one sentence without its full stop."""
    return words.say(f"finding.{finding.slug}.what", **_params(finding, words, ref))


def cause_with_evidence(finding: Finding, words: Catalogue, ref: str | None = None) -> str:
    """The same with its first evidence behind it, where the sentence has not taken that in itself."""
    told, figures = cause(finding, words, ref), _brief(finding, words)
    if not figures or _takes_in_evidence(finding, words):
        return told
    return words.say("screen.evidence_in", cause=told, evidence=figures)


def step(finding: Finding, words: Catalogue, ref: str | None = None) -> str | None:
    """What to do about it; None where that takes a run that no command can name."""
    key = f"finding.{finding.slug}.next"
    if ref is None and "{run}" in words.template(key):
        return None
    return words.say(key, **_params(finding, words, ref))


def evidence(finding: Finding, words: Catalogue) -> str | None:
    """The figures behind it that its sentence does not give."""
    return None if _takes_in_evidence(finding, words) else _figures(_unsaid(finding), words)


def all_evidence(finding: Finding, words: Catalogue) -> str | None:
    """All its figures, for where the sentence stands elsewhere."""
    return _figures(finding.evidence, words)


def _params(finding: Finding, words: Catalogue, ref: str | None) -> dict[str, Param]:
    """A sentence may name the run it is about, and take in the evidence."""
    told = {"run": ref, "evidence": _brief(finding, words), **finding.params}
    if isinstance(engine := told.get("engine"), str):
        told["engine"] = ENGINES.get(engine, engine)
    return {**told, "spread": _spread(finding, words)} if finding.slug == _FIRST else told


def _spread(finding: Finding, words: Catalogue) -> str:
    """What more of a generator there could be: processes here, or none."""
    workers = finding.params.get("more_workers")
    return words.say("screen.spread.none") if workers is None else words.say("screen.spread.more", workers=workers)


def _takes_in_evidence(finding: Finding, words: Catalogue) -> bool:
    return "{evidence}" in words.template(f"finding.{finding.slug}.what")


def _unsaid(finding: Finding) -> list[Evidence]:
    """The evidence that the sentence does not give by its own parameters."""
    return [figure for figure in finding.evidence if figure.value not in finding.params.values()]


def _brief(finding: Finding, words: Catalogue) -> str:
    """The first figures for a sentence, without what they rest on."""
    return words.say("screen.list_join").join(figure(one, words) for one in _unsaid(finding)[:_IN_SENTENCE])


def _figures(figures: Sequence[Evidence], words: Catalogue) -> str | None:
    return words.say("screen.list_join").join(figure(one, words) + _rests_on(one, words) for one in figures) or None


def figure(one: Evidence, words: Catalogue) -> str:
    """One figure with its range, its unit and its level."""
    key = f"evidence.{one.name}"
    name = words.say(key) if key in words else one.name
    if _is_part(one):
        return f"{name} {words.say('screen.evidence_of', value=one.value, n=one.n)}"
    text = f"{name} {units.measured(one.value, one.unit)}"
    if one.lo is not None and one.hi is not None:
        text += f" ({units.measured(one.lo, one.unit)} - {units.measured(one.hi, one.unit)})"
    return text + (words.say("screen.evidence_level", level=one.level) if one.level else "")


def _rests_on(one: Evidence, words: Catalogue) -> str:
    """The number of samples behind a figure, where that is not said by the figure itself."""
    return "" if one.n is None or _is_part(one) else words.say("screen.evidence_n", n=one.n)


def _is_part(one: Evidence) -> bool:
    """Whether it counts some of n."""
    return isinstance(one.value, int) and one.unit is None and one.n is not None
