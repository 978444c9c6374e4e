"""What the service refuses, loses or passes on unevenly: quotas, failures, pools, replicas, adapters."""

from __future__ import annotations

from ..case import Case
from ..sign import Opinion, both, either, strongest, weigh
from .over_time import by_a_clock, by_replica, slow_spells
from .queueing import idle_loop, one_at_a_time, part_decodes, waits


def rate_limit(case: Case) -> Opinion:
    """A quota refuses requests (429), or the service says that it is not available now (503)."""
    refused = either(case.most("refused_share").above(0.02, 0.05), case.most("unavailable_share").above(0.02, 0.05))
    return weigh([refused], supports=[case.high("waiting_above_zero").below(0.9, 0.5)])


def failures(case: Case) -> Opinion:
    """Requests fail, or were asked again by something in between: a first attempt is lost, a second answers late."""
    lost = weigh([case.made("lost_share", _lost(case), "share").above(0.005, 0.01)])
    unconnected = weigh(
        [case.most("unconnected_share").above(0.005, 0.01)],
        against=[both(case.high("little_asked").above(0.25, 0.4), case.most("failed_share").below(0.5, 0.2))],
    )
    retried = weigh(
        [
            case.low("ttft_mode_ratio").above(3, 6),
            case.low("ttft_mode_separation").above(0.85, 0.93),
            case.low("ttft_mode_share").within(0.01, 0.33, 0.2),
            case.low("ttft_mode_spread").below(1.0, 0.6),
        ],
        supports=[case.low("ttft_mode_in_time").below(0.5, 0.25)],
        against=[by_a_clock(case), case.high("adapters_waiting").above(0.1, 0.3)],
    )
    return strongest(lost, unconnected, retried, _asked_again(case))


def _asked_again(case: Case) -> Opinion:
    """A few requests at several loads are late by the same time: a timer's, whatever the load."""
    late = [(found, level) for level in case.group.levels if (found := level.value("late_by")) is not None]
    by = [found for found, _ in late]
    n = sum(level.figures["late_by"].n or 0 for _, level in late if level.figures["late_by"] is not None)
    return weigh(
        [
            case.made("late_requests", float(n) if late else None, "requests").above(2, 5),
            case.made("late_by_ratio", max(by) / min(by) if by else None).below(1.4, 1.15),
            case.most("late_spread").below(0.4, 0.2),
        ],
        against=[by_a_clock(case), slow_spells(case), by_replica(case), case.high("adapters_waiting").above(0.1, 0.3)],
    )


def _lost(case: Case) -> float | None:
    """Of the requests that failed, those that were not refused and had a connection, at the level with the most."""
    shares = []
    for level in case.group.levels:
        failed = level.value("failed_share")
        if failed is not None:
            shares.append(failed - sum(level.value(name) or 0.0 for name in _OTHERWISE_LOST))
    return max(shares, default=None)


_OTHERWISE_LOST = ("refused_share", "unavailable_share", "unconnected_share")


def client_pool(case: Case) -> Opinion:
    """Fewer requests are in flight than asked for, and no more of them at a higher load: they wait before they go."""
    before = weigh(
        [case.high("little_asked").above(0.1, 0.25), idle_loop(case)],
        against=[case.most("refused_share").above(0.02, 0.05), case.high("failed_share").above(0.2, 0.5)],
    )
    behind = weigh(
        [
            waits(case),
            part_decodes(case),
            case.made("unseen_share", _unseen(case), "share", "both").above(0.35, 0.6),
            case.high("waiting_above_zero").below(0.5, 0.2),
        ],
        against=[one_at_a_time(case)],
    )
    return strongest(before, behind)


def _unseen(case: Case) -> float | None:
    """Of the mean TTFT, what the server did not see."""
    beyond, ttft = case.highest.value("ttft_beyond_server"), case.highest.value("ttft_mean")
    return None if beyond is None or not ttft else beyond / ttft


def replica_imbalance(case: Case) -> Opinion:
    """Some replicas are slower, or have more to do, than others."""
    named = weigh(
        [
            either(
                *(case.high(f"{way}_tpot_share").above(0.15, 0.3) for way in ("replica", "target")),
                *(case.high(f"{way}_ttft_share").above(0.2, 0.4) for way in ("replica", "target")),
            )
        ]
    )
    told = weigh([case.high("running_spread").above(1.4, 2.0)])
    seen = weigh(
        [
            case.high("tpot_mode_ratio").above(1.2, 1.4),
            case.high("tpot_mode_separation").above(0.92, 0.97),
            case.high("tpot_mode_share").within(0.1, 0.9, 0.3),
            case.high("tpot_mode_in_time").below(0.3, 0.15),
            case.low("tpot_mode_ratio").above(1.15, 1.3),
            case.low("tpot_mode_separation").above(0.92, 0.97),
        ],
    )
    return strongest(named, told, seen)


def adapters(case: Case) -> Opinion:
    """Requests wait for an adapter while slots are free: adapters take turns in the engine, as it tells itself."""
    return weigh([case.high("adapters_waiting").above(0.1, 0.3)])
