"""What is asked of the machine (`Ask`) and how one replica of its engine is set (`Setting`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from .cost import Cost

Policy = Literal["chunked", "blocking", "static"]
"""How a step is put together: a row of `policies.POLICIES`."""
Reserve = Literal["growing", "max_tokens", "context"]
"""The KV blocks given on admission: the prompt's, all that the answer may need, or a whole context."""


class Ask(msgspec.Struct, frozen=True, gc=False):
    """One request. `output_tokens` is what the model writes if nothing cuts it. ValueError for a count below 1."""

    key: int
    prompt_tokens: int
    output_tokens: int
    max_tokens: int | None = None
    """The limit that the request names; None = `output_tokens`."""
    hashes: tuple[int, ...] = ()
    """Of the full blocks of its prompt, each with all before it: equal hashes are equal heads of prompts."""
    adapter: int | None = None

    def __post_init__(self) -> None:
        """The check; see the class."""
        if self.prompt_tokens < 1 or self.output_tokens < 1 or (self.max_tokens is not None and self.max_tokens < 1):
            raise ValueError("a count below 1")

    @property
    def written(self) -> int:
        """Tokens of the answer."""
        return self.output_tokens if self.max_tokens is None else min(self.output_tokens, self.max_tokens)

    @property
    def limit(self) -> int:
        """The most that it may be."""
        return self.output_tokens if self.max_tokens is None else self.max_tokens


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """Each round `drafts` tokens are guessed and verified; the first wrong one ends what is accepted.

    A round gives 1 + accepted tokens: (1 - a^(k + 1)) / (1 - a) in the mean. A draft costs `draft_share` of a step
    that decodes one token of each sequence.
    """

    drafts: int
    acceptance: float
    draft_share: float = 0.0


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One replica. ValueError for a count below 1."""

    cost: Cost
    policy: Policy = "chunked"
    slots: int = 256
    """Sequences at once."""
    max_batched_tokens: int = 2048
    """Prompt and decoded tokens of one step. A static batch takes its prompts whole, however many; and all that decode
    do so in every step, even if slots x tokens of a round are more than this."""
    kv_blocks: int | None = None
    """None = a pool that never fills."""
    block_tokens: int = 16
    reserve: Reserve = "growing"
    context_tokens: int = 8192
    """What `reserve = "context"` gives to each sequence."""
    prefix_cache: bool = False
    speculation: Speculation | None = None
    adapter_slots: int = 1
    """LoRA adapters that are loaded at once; the one not used for longest goes. While all are in use, requests for
    others wait and are passed over."""
    adapter_swap_s: float = 0.0
    """What loading another one adds to the step in which its sequence is admitted."""

    def __post_init__(self) -> None:
        """The check; see the class."""
        counts = (self.slots, self.max_batched_tokens, self.block_tokens, self.context_tokens, self.adapter_slots)
        if min(counts) < 1 or (self.kv_blocks is not None and self.kv_blocks < 1):
            raise ValueError("a count below 1")
