"""How a model is spread over devices."""

from __future__ import annotations

import msgspec


class Parallel(msgspec.Struct, frozen=True, kw_only=True):
    """`tensor` x `pipeline` devices hold one copy of the model, `data` such copies serve side by side.

    `expert`: over how many devices the experts are dealt out whole, rather than each being cut.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1

    @property
    def devices(self) -> int:
        """All of them."""
        return self.tensor * self.pipeline * self.data
