"""What forbids to conclude anything else, or makes figures look other than they are."""

from __future__ import annotations

from ..case import Case
from ..level import LevelEvidence
from ..sign import Opinion, Sign, both, either, strongest, weigh


def generator_limited(case: Case) -> Opinion:
    """The load generator was the limit: by its own verdict, or by what the server saw of the same requests."""
    limited = case.made("generator_limited", _generator(case), "share")
    few = both(case.high("little_asked").above(0.1, 0.25), case.high("loop_lag_p99").below(5, 2))
    return weigh([limited.above(0, 1)], against=[few])


def _generator(case: Case) -> float | None:
    verdicts = [level.facts.generator for level in case.group.levels]
    return None if set(verdicts) == {"unknown"} else float("limited" in verdicts)


FEW_WAVES, FEW_ANSWERS = (4.0, 3.0), (20.0, 12.0)
"""Answers for each request in flight, and in all, below which a level begins to be too short, and where it is."""
LOST = (0.05, 0.1)


def too_short(case: Case) -> Opinion:
    """Fewer answers than three for each request in flight, or than tell a percentile."""
    waves = case.made("answers_per_slot", _waves(case.highest))
    answers = case.made("answers", float(case.facts.ok), "requests")
    return strongest(
        weigh([waves.below(*FEW_WAVES)], against=[_refused(case)]),
        weigh([answers.below(*FEW_ANSWERS)], against=[_refused(case)]),
    )


def enough_answers(level: LevelEvidence) -> bool:
    """Whether a level is not too short by any measure, or its answers are missing for another reason."""
    waves = _waves(level)
    lost = max(level.value("refused_share") or 0.0, level.value("failed_share") or 0.0)
    short = level.facts.ok < FEW_ANSWERS[0] or (waves is not None and waves < FEW_WAVES[0])
    return lost > LOST[0] or not short


def _waves(level: LevelEvidence) -> float | None:
    return None if level.is_open or not level.level else level.facts.ok / level.level


def _refused(case: Case) -> Sign:
    return either(case.high("refused_share").above(*LOST), case.high("failed_share").above(*LOST))


def prefix_flattered(case: Case) -> Opinion:
    """Prompts that the server had in its cache: a prefill that did not take place."""
    return strongest(
        weigh([case.high("prefix_hit_ratio").above(0.1, 0.2)]),
        weigh([case.high("unprocessed_prompt_share").above(0.1, 0.2)]),
    )


def short_answers(case: Case) -> Opinion:
    """Answers end long before the length that was asked for."""
    return weigh(
        [case.high("output_over_asked").below(0.75, 0.55)], supports=[case.high("stopped_share").above(0.3, 0.7)]
    )


def unreal_lengths(case: Case) -> Opinion:
    """All prompts are as long: nothing of a real mix is in the percentiles."""
    return weigh([case.high("prompt_cv").below(0.15, 0.1)])


def grouped_tokens(case: Case) -> Opinion:
    """Frames that carry several tokens: their gap is no token gap."""
    return weigh(
        [case.high("tokens_per_frame").above(1.1, 1.3)],
        against=[case.high("burst_share").above(0.3, 0.6)],
    )


def buffered_stream(case: Case) -> Opinion:
    """Something on the way holds the tokens back: they come all at once, or in bursts."""
    whole = weigh(
        [
            case.least("stream_share").above(0.85, 0.95),
            either(case.most("burst_share").above(0.6, 0.8), case.made("streamed", _unstreamed(case)).above(0, 1)),
            case.high("output_tokens").above(3, 5),
        ]
    )
    bursts = weigh(
        [
            case.low("burst_share").above(0.3, 0.6),
            case.high("burst_share").above(0.3, 0.6),
            case.high("output_tokens").above(3, 5),
        ],
        against=[both(case.high("acceptance_length").above(1.3, 1.8), case.high("burst_share").below(0.75, 0.6))],
    )
    return strongest(whole, bursts)


def _unstreamed(case: Case) -> float:
    """Asked for as a stream, and nothing was one."""
    return float(case.facts.streamed and case.highest.value("token_gap") is None)
