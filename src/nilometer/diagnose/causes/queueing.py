"""Requests wait: for a slot, for a batch to end, for the front end, for an admission that is too careful."""

from __future__ import annotations

from ..case import Case
from ..impact import impact
from ..sign import Look, Opinion, Sign, both, either, strongest, weigh


def waits(case: Case) -> Sign:
    """Most of the TTFT at the highest load is not there at the lowest."""
    return case.step("wait_share").above(0.3, 0.5)


def part_decodes(case: Case) -> Sign:
    """Of the requests in flight only a part decodes."""
    return case.high("decoding_share").below(0.88, 0.75)


def steady_gap(case: Case) -> Sign:
    """A stream does not slow down as the load grows beyond the knee; or that is little beside the wait."""
    return either(
        case.step("gap_elasticity_past_knee").below(0.6, 0.3),
        case.step("gap_ratio").below(2.0, 1.4),
        case.made("wait_of_e2e", impact("waiting", case), "share").above(0.5, 0.7),
    )


def queue_over_wait(case: Case) -> Look:
    """The server's own queue time over what the client saw of waiting."""
    queue, wait = case.highest.value("server_queue_mean"), case.group.value("wait")
    return case.made(
        "queue_over_wait", queue / wait if queue is not None and wait and wait > 0 else None, source="both"
    )


def no_batches(case: Case) -> Sign:
    """Nobody is taken in while a batch goes on that somebody has left."""
    return both(case.high("refill_share").below(0.12, 0.05), case.high("decoding").above(1.2, 2.0))


def prompts_fill(case: Case) -> Sign:
    """Prompts alone fill the server's time."""
    return both(case.step("prefill_load").above(0.6, 0.85), case.step("gap_ratio").above(1.4, 2.0))


def idle_loop(case: Case) -> Sign:
    """The load generator was seldom away; where that was not told, it was not the limit by its own verdict."""
    lag = case.high("loop_lag_p99")
    if lag.value is not None:
        return lag.below(10, 5)
    return case.made("generator_fit", float(case.facts.generator != "limited")).above(0, 1)


def one_at_a_time(case: Case) -> Sign:
    """First tokens come evenly spaced."""
    return both(case.high("spacing_evenness").above(0.3, 0.45), case.high("first_token_spacing").above(6, 12))


def slot_turns(case: Case) -> Sign:
    """As soon as a stream ends, another takes its place: its first token comes after what a request alone takes."""
    turn, alone = case.highest.value("turn_gap"), case.lowest.value("ttft_mean")
    over = case.made("turn_over_ttft", turn / alone if turn is not None and alone else None)
    return over.within(0.75, 1.4, 0.15)


def queue(case: Case) -> Opinion:
    """Requests wait for one of a fixed number of slots: TTFT grows, token gaps do not."""
    full = weigh(
        [waits(case), slots_full(case).above(0.75, 0.92), case.high("waiting_above_zero").above(0.2, 0.5)],
        against=[no_batches(case), case.high("preemptions_per_100").above(0.5, 2)],
    )
    seen = weigh(
        [
            waits(case),
            part_decodes(case),
            steady_gap(case),
            either(case.high("full_decoding_cv").below(0.6, 0.35), slot_turns(case)),
        ],
        supports=[
            case.high("waiting_above_zero").above(0.2, 0.5),
            queue_over_wait(case).within(0.6, 1.4, 0.3),
        ],
        against=[
            no_batches(case),
            prompts_fill(case),
            both(_front(case), either(queue_over_wait(case).below(0.6, 0.3), _silent(case))),
            both(case.high("kv_usage_max").above(0.85, 0.95), case.high("kv_usage_mean").above(0.75, 0.85)),
            case.high("preemptions_per_100").above(0.5, 2),
            queue_over_wait(case).below(0.5, 0.2),
            slots_full(case).below(0.8, 0.55),
        ],
    )
    return strongest(full, seen)


def slots_full(case: Case) -> Look:
    """Requests that the server runs over the slots that it has."""
    running, slots = case.highest.value("running_mean"), case.highest.value("slots") or case.facts.slots
    return case.made("slots_full", running / slots if running is not None and slots else None, "share", "server")


def _silent(case: Case) -> Sign:
    return case.made("server_silent", float(not case.server_seen)).above(0, 1)


def static_batching(case: Case) -> Opinion:
    """Requests wait for a whole batch to end: nobody joins one that goes on."""
    return weigh(
        [no_batches(case), case.high("in_flight").above(2, 3)],
        supports=[case.high("join_share").below(0.6, 0.25)],
    )


def front_end(case: Case) -> Opinion:
    """Requests pass something one at a time before the engine: first tokens come evenly spaced, gaps stay."""
    return weigh(
        [
            one_at_a_time(case),
            waits(case),
            case.high("decoding_share").below(0.96, 0.88),
            case.step("gap_ratio").below(2.2, 1.6),
        ],
        supports=[queue_over_wait(case).below(0.6, 0.3), case.high("waiting_above_zero").below(0.6, 0.3)],
        against=[prompts_fill(case), no_batches(case), slot_turns(case)],
    )


def _front(case: Case) -> Sign:
    """First tokens come evenly spaced, and not because one takes the place of another."""
    evenly = one_at_a_time(case)
    return evenly._replace(degree=0.0) if evenly.degree is not None and slot_turns(case).speaks else evenly


def careful_admission(case: Case) -> Opinion:
    """Requests wait although there are slots and KV blocks: room is kept for answers that never grow so long."""
    return weigh(
        [
            case.high("waiting_with_room").above(0.25, 0.5),
            case.high("output_over_asked").below(0.6, 0.4),
            part_decodes(case),
        ],
    )
