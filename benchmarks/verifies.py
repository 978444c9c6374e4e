"""Real verifies of a server against itself: how often a difference is claimed where there is none.

Twenty of them on mock servers, one started for each run. Each request is off the script by a factor of its own, and
each run by another (sd 3 %), all drawn by seed; the whole of nilometer measures and judges as `nilo verify` does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from nilometer.cli.comparing import Terms, rule_of
from nilometer.cli.progress import Progress
from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.spec import Load, Prompts
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.engines.tell import Tell, quiet
from nilometer.experiment.contest import Contest, hold
from nilometer.experiment.follow import Stop
from nilometer.experiment.measure import Behind
from nilometer.experiment.verify import Pair, Reached
from nilometer.text.i18n import Catalogue

from .result import Row, shown

VERIFIES = 20
RUN_SD = 0.03
REQUEST_SD = 0.2
MOST = 10
_LOAD = Load(concurrency=16, warmup_s=0.3, duration_s=1.5)
_PROMPTS = Prompts(input_tokens="16", output_tokens="10")


def verifies() -> list[Row]:
    """All of them."""
    return _of(VERIFIES)


def quick_verifies() -> list[Row]:
    """Two of them."""
    return _of(2)


def _of(n: int) -> list[Row]:
    outcomes: Counter[str] = Counter()
    pairs = 0
    for seed in range(n):
        outcome, took = _one(seed)
        outcomes[outcome] += 1
        pairs += took
        print(f"  verify {seed}: {outcome} after {took} pairs", flush=True)
    claimed = outcomes["REGRESSED"] + outcomes["IMPROVED"]
    error = math.sqrt(0.05 * 0.95 / n)
    says = f"5 % are allowed; of {n} the standard error of a share of 5 % is {100 * error:.0f} %"
    met = claimed / n <= 0.05 + error
    return [
        Row("A/A called different", f"<= {100 * (0.05 + error):.0f}", 100 * claimed / n, None, "%", met, says),
        shown("A/A SAME", outcomes["SAME"] / n * 100, unit="%"),
        shown("A/A UNDECIDED", outcomes["UNDECIDED"] / n * 100, unit="%"),
        shown("pairs a verify", pairs / n, unit=""),
    ]


def _one(seed: int) -> tuple[str, int]:
    draw = Random(seed)
    terms = Terms(rule_of(None, MOST), frozenset())

    @contextmanager
    def start(_tell: Tell) -> Iterator[Reached]:
        factor = math.exp(draw.gauss(0, RUN_SD))
        script = Script(ttft_ms=60 * factor, gap_ms=8 * factor, noise=REQUEST_SD, seed=draw.randrange(1 << 30))
        with launched(script) as server:
            yield Reached((), Behind(server.url, EngineFacts(name="mock"), ModelFacts(id="mock"), server.pid))

    def decided(pairs: Sequence[Pair]) -> bool:
        return terms.judge(pairs)[0].verdict != "UNDECIDED"

    contest = Contest("itself", "mock", start, start, _LOAD, _PROMPTS, MOST)
    with Progress(Catalogue("en"), quiet=True) as watch:
        _, verified = hold(
            contest, decided=decided, runs=None, watch=watch, stop=Stop(), tell=quiet, random=Random(seed)
        )
    return terms.judge(verified.pairs)[0].verdict, len(verified.pairs)
