"""What the diagnosis said when it was scored last, as the reference shows it: `accuracy.json` beside this file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from .score import Accuracy, Share

FILE = Path(__file__).with_name("accuracy.json")


class EngineCase(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of the real engine: what was said with its page, and of the client's data alone."""

    name: str
    right_server: bool
    right_client: bool
    said_server: str
    said_client: str


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """By view of the services in virtual time; and the cases of the real engine that nothing was tuned on."""

    views: dict[str, Accuracy] = {}
    engine: list[EngineCase] = []

    @property
    def engine_shares(self) -> dict[str, Share]:
        """Right ones of all, with the engine's page and without."""
        return {
            "server": Share(sum(one.right_server for one in self.engine), len(self.engine)),
            "client": Share(sum(one.right_client for one in self.engine), len(self.engine)),
        }


def kept() -> Scored:
    """What the file has; nothing where there is none."""
    return msgspec.json.decode(FILE.read_bytes(), type=Scored) if FILE.exists() else Scored()


def keep(scored: Scored) -> None:
    """Write the file anew."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(scored), indent=1) + b"\n")
