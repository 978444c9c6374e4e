"""The LoRA adapters that an engine holds: which are loaded, which are in use, and what loading another one takes."""

from __future__ import annotations


class Adapters:
    """At most `slots` at once; the one not used for longest goes, but none that a running sequence needs."""

    def __init__(self, slots: int, swap_s: float) -> None:
        self._slots, self._swap_s = slots, swap_s
        self._loaded: dict[int, None] = {}
        """The one used last is the last."""
        self._users: dict[int, int] = {}

    def fits(self, adapter: int | None) -> bool:
        """Whether a sequence with it may run beside those that do."""
        return adapter is None or adapter in self._users or len(self._users) < self._slots

    def enters(self, adapter: int | None) -> float:
        """A sequence with it runs from now on, which must fit; the seconds that loading it takes."""
        if adapter is None:
            return 0.0
        new = adapter not in self._loaded
        if new and len(self._loaded) >= self._slots:
            del self._loaded[next(one for one in self._loaded if one not in self._users)]
        self._loaded.pop(adapter, None)
        self._loaded[adapter] = None
        self._users[adapter] = self._users.get(adapter, 0) + 1
        return self._swap_s if new else 0.0

    def leaves(self, adapter: int | None) -> None:
        """A sequence with it runs no longer."""
        if adapter is None:
            return
        self._users[adapter] -= 1
        if not self._users[adapter]:
            del self._users[adapter]
