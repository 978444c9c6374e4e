"""What the engine's own work limits: decoding, prompts, the KV cache, drafts, links between devices."""

from __future__ import annotations

from functools import lru_cache

from nilometer.core.errors import SpecError
from nilometer.plan.devices import device

from ..case import Case
from ..sign import Look, Opinion, Sign, both, either, strongest, weigh
from .queueing import no_batches, one_at_a_time, part_decodes, prompts_fill, slots_full, waits

RESERVING = frozenset({"llama-server", "skulk-llama-server", "xllamacpp", "llama.cpp", "llamacpp"})
"""Engines that give each slot its whole context; a paged cache gives blocks as they are needed."""


def last_elasticity(case: Case) -> Look:
    """How the token gap grows between the two highest loads."""
    found = case.group.elasticities
    return Look("gap_elasticity", found[-1] if found else None)


def decode_compute(case: Case) -> Opinion:
    """All requests decode, each slower the more there are: more of them bring no more tokens."""
    return weigh(
        [
            last_elasticity(case).above(0.5, 0.75),
            case.high("decoding_share").above(0.65, 0.8),
            case.step("throughput_gain_last").below(0.35, 0.2),
        ],
        against=[_stalls(case), prompts_fill(case)],
    )


def decode_bandwidth(case: Case) -> Opinion:
    """A stream is as slow alone as with others, and as slow as reading the weights takes."""
    return weigh(
        [
            bandwidth_use(case).above(0.4, 0.6),
            case.step("gap_elasticity").below(0.5, 0.3),
        ],
        against=[waits(case), _stalls(case)],
    )


def interconnect(case: Case) -> Opinion:
    """Over several devices a stream is slow alone, and reading the weights is a small part of it: the rest is links."""
    return weigh(
        [
            case.made("devices", float(len(case.facts.devices)), "devices").above(1, 2),
            bandwidth_use(case).below(0.55, 0.4),
            case.step("gap_elasticity").below(0.6, 0.4),
        ],
        against=[_stalls(case)],
    )


def bandwidth_use(case: Case) -> Look:
    """The bytes of the weights over the token gap at the lowest load, as a share of what the devices' memories give."""
    facts, gap_ms = case.lowest.facts, case.lowest.value("token_gap")
    rates = [known_rate(name) for name in facts.devices]
    if not rates or None in rates or facts.weight_bytes is None or not gap_ms:
        return case.made("bandwidth_use", None)
    total = sum(rate or 0.0 for rate in rates)
    return case.made("bandwidth_use", facts.weight_bytes / (gap_ms / 1000) / total, "share", "both")


@lru_cache(maxsize=64)
def known_rate(name: str) -> float | None:
    """Bytes a second that a device reads, by the table of devices; None of one that is not in it."""
    try:
        return device(name).bandwidth_bytes_per_s
    except SpecError:
        return None


def prefill(case: Case) -> Opinion:
    """Working through prompts fills the server's time: token gaps grow with the load, and TTFT with the prompt."""
    line = weigh(
        [case.step("prefill_load").above(0.5, 0.7), case.low("line_r").above(0.3, 0.5), _shared_steps(case)],
        against=[_stalls(case), case.high("prefix_hit_ratio").above(0.3, 0.6)],
    )
    alike = weigh(
        [
            case.made("prefill_time_load", time_load(case), "share").above(0.65, 0.85),
            case.low("prompt_cv").below(0.15, 0.1),
            waits(case),
            _shared_steps(case),
        ],
        against=[_stalls(case)],
    )
    return strongest(line, alike)


def _shared_steps(case: Case) -> Sign:
    """Prompts that fill the engine's steps slow down the streams that share them; those before the engine do not."""
    return either(case.step("gap_ratio").above(1.4, 2.0), stalled(case).above(0.1, 0.25))


def time_load(case: Case) -> float | None:
    """Requests a second x TTFT alone: what prompts of one length take of the server's time at most."""
    rate, alone = case.highest.value("requests_per_s"), case.lowest.value("ttft_mean")
    return None if rate is None or alone is None else rate * alone / 1000


def prefill_stalls(case: Case) -> Opinion:
    """A prompt that is worked on stops all streams at once, for a good part of their time."""
    return weigh(
        [_stalls(case), stalled(case).above(0.02, 0.05), case.high("gap_first_token_share").above(0.4, 0.65)],
        against=[
            case.high("burst_share").above(0.4, 0.7),  # gaps are the proxy's then
            case.low("pause_time_share").above(0.04, 0.1),
            both(case.low("slow_ratio").above(1.25, 1.5), case.low("slow_separation").above(0.8, 0.88)),
        ],
    )


def stalled(case: Case) -> Look:
    """What gaps beyond the usual one take of the E2E at the highest load."""
    budget = case.highest.e2e
    return case.made("stall_share", None if budget is None else budget.part("stalls").share, "share")


def _stalls(case: Case) -> Sign:
    """Long gaps that all streams have at once."""
    return both(case.high("long_gaps_per_request").above(0.1, 0.25), case.high("gap_simultaneity").above(0.5, 0.7))


def kv_capacity(case: Case) -> Opinion:
    """The KV cache is full: requests wait for blocks, and running ones lose theirs."""
    told = weigh(
        [
            case.high("kv_usage_max").above(0.85, 0.95),
            either(case.high("preemptions_per_100").above(0.2, 1), case.high("waiting_above_zero").above(0.2, 0.5)),
        ],
        supports=[part_decodes(case)],
        against=[no_batches(case)],
    )
    victims = weigh(
        [
            case.high("long_gaps_per_request").above(0.05, 0.15),
            case.high("gap_simultaneity").below(0.5, 0.3),
            part_decodes(case),
        ],
        against=[case.high("preemptions_per_100").below(0.2, 0.05)],
    )
    tokens = weigh(
        [_steadier_in_tokens(case).below(1.0, 0.6), part_decodes(case), waits(case)],
        against=[case.high("kv_usage_max").below(0.85, 0.7), no_batches(case), prompts_fill(case)],
    )
    return strongest(told, victims, tokens._replace(score=tokens.score * 0.9))


def _steadier_in_tokens(case: Case) -> Look:
    """Spread of the tokens held over that of the streams, while somebody waits: below 1 tokens are the limit."""
    tokens, streams = case.highest.value("full_held_tokens_cv"), case.highest.value("full_decoding_cv")
    return case.made("tokens_over_streams_cv", tokens / streams if tokens is not None and streams else None)


def kv_reserved(case: Case) -> Opinion:
    """Each slot is given KV for a whole context, of which requests use a small part: memory allows few slots."""
    told = weigh(
        [
            case.made("context_use", _context_use(case), "share").below(0.3, 0.15),
            case.made("context", _context(case), "tokens").above(1024, 2048),
            part_decodes(case),
            waits(case),
            slots_full(case).above(0.6, 0.8),
        ],
        against=[no_batches(case), prompts_fill(case)],
    )
    idle = weigh(
        [
            slots_full(case).below(0.8, 0.55),
            part_decodes(case),
            case.high("full_decoding_cv").below(0.4, 0.25),
            case.high("kv_usage_max").below(0.7, 0.5),
            case.high("waiting_above_zero").above(0.2, 0.5),
            waits(case),
        ],
        against=[
            no_batches(case),
            prompts_fill(case),
            case.high("output_over_asked").below(0.6, 0.4),
            case.high("adapters_waiting").above(0.1, 0.3),
            one_at_a_time(case),
        ],
    )
    fits = weigh(
        [
            case.made("contexts_over_running", _contexts_over_running(case), None, "server").within(0.85, 1.3, 0.15),
            part_decodes(case),
            case.high("kv_usage_max").below(0.7, 0.5),
            case.high("waiting_above_zero").above(0.2, 0.5),
            waits(case),
        ],
        against=[
            no_batches(case),
            prompts_fill(case),
            one_at_a_time(case),
            case.high("adapters_waiting").above(0.1, 0.3),
        ],
    )
    return strongest(told, fits, idle)


def _contexts_over_running(case: Case) -> float | None:
    """Whole contexts that the cache holds, over the requests that run: near 1 where each is given one."""
    pool, context = case.highest.value("kv_capacity_tokens"), case.highest.value("context_tokens")
    context = context or case.facts.context_tokens
    running = case.highest.value("running_mean")
    return pool / context / running if pool and context and running else None


def _context(case: Case) -> float | None:
    """Tokens that each slot is given, by an engine that sets them aside."""
    if (case.facts.engine or "").lower() not in RESERVING:
        return None
    return case.highest.value("context_tokens") or case.facts.context_tokens


def _context_use(case: Case) -> float | None:
    context = _context(case)
    prompt, output = case.highest.value("prompt_tokens"), case.highest.value("output_tokens")
    return None if not context or prompt is None or output is None else (prompt + output) / context


def poor_drafts(case: Case) -> Opinion:
    """Few of the drafted tokens are accepted: the drafting costs more than it brings."""
    return weigh([case.high("acceptance_ratio").below(0.4, 0.28)])
