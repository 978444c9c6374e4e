"""What a server's own pages say of its bottleneck, without any client: a glance, not a diagnosis.

Without token stamps nothing here is more than `likely`, and static batching, stalls, proxies, front ends and the client
itself cannot be seen at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nilometer.core.finding import Confidence, Evidence, Finding

from .sign import Look, Opinion, weigh

UNSEEN = (
    "static_batching",
    "prefill_stalls",
    "front_end",
    "buffered_stream",
    "generator_limited",
    "client_pool",
    "noisy_neighbour",
)
"""What takes a client's stamps."""
LIKELY = 0.8


class Page:
    """The figures of a stretch, by the names of a Summary's `server`."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        self._figures = figures

    def look(self, name: str) -> Look:
        """One of them, as it was told."""
        return self.made(name, self._figures.get(name))

    def made(self, name: str, value: float | None) -> Look:
        """A figure made of others."""
        return Look(name, None if value is None else Evidence(name=name, value=value, source="server"))

    def share(self, part: str, whole: str) -> Look:
        """One figure over another."""
        of, all_of = self._figures.get(part), self._figures.get(whole)
        return self.made(f"{part}_share", of / all_of if of is not None and all_of else None)


class PageRule(NamedTuple):
    """A cause as far as a page shows it."""

    slug: str
    of: Callable[[Page], Opinion]
    metric: str


def _kv_capacity(page: Page) -> Opinion:
    return weigh(
        [page.look("kv_usage_mean").above(0.8, 0.92), page.look("waiting_above_zero").above(0.1, 0.4)],
        supports=[page.look("preemptions").above(0, 1)],
    )


def _careful_admission(page: Page) -> Opinion:
    return weigh([page.look("waiting_with_room").above(0.3, 0.6), page.look("kv_usage_mean").below(0.7, 0.5)])


def _queue(page: Page) -> Opinion:
    return weigh(
        [page.look("waiting_above_zero").above(0.2, 0.5), page.share("queue_mean_s", "ttft_mean_s").above(0.3, 0.5)],
        supports=[page.look("kv_usage_max").below(0.95, 0.85)],
        against=[page.look("kv_usage_mean").above(0.85, 0.95)],
    )


def _prefill(page: Page) -> Opinion:
    return weigh(
        [page.share("prefill_mean_s", "e2e_mean_s").above(0.3, 0.5)],
        against=[page.look("prefix_hit_ratio").above(0.5, 0.8)],
    )


def _poor_drafts(page: Page) -> Opinion:
    return weigh([page.look("acceptance_ratio").below(0.6, 0.4)])


def _adapters(page: Page) -> Opinion:
    return weigh([page.look("adapters_waiting").above(0.1, 0.3)])


def _imbalance(page: Page) -> Opinion:
    return weigh([page.look("running_spread").above(1.5, 2.0)])


RULES: tuple[PageRule, ...] = (
    PageRule("kv_capacity", _kv_capacity, "ttft"),
    PageRule("careful_admission", _careful_admission, "ttft"),
    PageRule("queue", _queue, "ttft"),
    PageRule("prefill", _prefill, "ttft"),
    PageRule("replica_imbalance", _imbalance, "tpot"),
    PageRule("adapters", _adapters, "ttft"),
    PageRule("poor_drafts", _poor_drafts, "tpot"),
)


def by_page(figures: Mapping[str, float]) -> list[Finding]:
    """What holds, surest first; empty where nothing does or nothing was told."""
    page = Page(figures)
    held = [(rule, rule.of(page)) for rule in RULES]
    standing = sorted(((rule, one) for rule, one in held if one.holds), key=lambda pair: -pair[1].score)
    return [_finding(rule, opinion) for rule, opinion in standing]


def _finding(rule: PageRule, opinion: Opinion) -> Finding:
    sure: Confidence = "likely" if opinion.score >= LIKELY else "possible"
    return Finding(
        slug=rule.slug,
        kind="cause",
        severity="medium",
        confidence=sure,
        metric=rule.metric,
        evidence=[sign.evidence for sign in opinion.speaking if sign.evidence is not None],
        against=[sign.evidence for sign in opinion.against if sign.evidence is not None],
        missing=list(opinion.missing),
    )
