"""What a run used and what that costs by the spec's price: tokens by the million, devices by the hour.

None wherever a part that the price names is not known: half a cost is not said.
"""

from __future__ import annotations

from nilometer.core.clock import NS_PER_S
from nilometer.core.run import Phases
from nilometer.core.spec import Price
from nilometer.core.summary import Cost, Throughput

from .quantiles import Ints
from .table import NONE, Table

_MILLION = 1e6
_HOUR_S = 3_600.0


def cost(table: Table, made: Throughput, price: Price, phases: Phases, devices: int | None) -> Cost:
    """Tokens of all requests of the run, the price of these and of its time, and tokens for the window's money.

    `devices`: how many serve, None where unknown. A request that the server refused used nothing.
    """
    into, out = _known(table.prompt_tokens), _known(table.output_tokens)
    served = (table.sent_ns != NONE) & ~table.of("error")
    uncounted = int((served & (table.prompt_tokens == NONE)).sum())
    length_s = (phases.end_ns - phases.start_ns) / NS_PER_S
    a_second = spent(price, made.input_tokens_per_s, made.output_tokens_per_s, 1.0, devices)
    return Cost(
        prompt_tokens=into,
        output_tokens=out,
        uncounted=uncounted,
        spent=spent(price, into, out, length_s, devices),
        tokens_per_currency=made.output_tokens_per_s / a_second if made.output_tokens_per_s and a_second else None,
    )


def spent(
    price: Price,
    input_tokens: float | None,
    output_tokens: float | None,
    length_s: float | None,
    devices: int | None,
) -> float | None:
    """The cost in the price's currency; None without a price, and where an amount that it prices is unknown."""
    hours = None if length_s is None or devices is None else devices * length_s / _HOUR_S
    parts = (
        (price.input_per_million, None if input_tokens is None else input_tokens / _MILLION),
        (price.output_per_million, None if output_tokens is None else output_tokens / _MILLION),
        (price.device_hour, hours),
    )
    priced = [(each, amount) for each, amount in parts if each is not None]
    if not priced or any(amount is None for _, amount in priced):
        return None
    return sum(each * (amount or 0.0) for each, amount in priced)


def _known(tokens: Ints) -> int | None:
    counted = tokens[tokens != NONE]
    return int(counted.sum()) if len(counted) else None
