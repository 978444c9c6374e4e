"""Traces of arrivals and lengths without any text, row by row: Azure, BurstGPT, Mooncake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nilometer.workload.entry import Entry

from .row import Broken, Got, Skipped, Zone, blocks, iso_ns, length, needed, number_ns

MOONCAKE_BLOCK_TOKENS = 512


class Azure:
    """A row of one of Azure's traces; whether stamps have a zone is a fact of each, and for 2025 of its first row."""

    def __init__(self, zone: Zone) -> None:
        self.zone = zone

    def __call__(self, row: Mapping[str, str], line: int) -> Sequence[Got]:
        return (
            Entry(
                line=line,
                at_ns=iso_ns(row["TIMESTAMP"], self.zone),
                input_tokens=needed(length(row["ContextTokens"], "ContextTokens"), "ContextTokens"),
                output_tokens=needed(length(row["GeneratedTokens"], "GeneratedTokens"), "GeneratedTokens"),
            ),
        )


def burstgpt(row: Mapping[str, str], line: int) -> Sequence[Got]:
    """Stamps are seconds from the trace's own day 0. An answer of no tokens is a failed call."""
    at_ns = number_ns(row["Timestamp"], "s")
    asked = needed(length(row["Request tokens"], "Request tokens"), "Request tokens")
    answered = needed(length(row["Response tokens"], "Response tokens"), "Response tokens")
    if not answered:
        return (Skipped("failed_call"),)
    return (Entry(line=line, at_ns=at_ns, input_tokens=asked, output_tokens=answered),)


class MooncakeRow(msgspec.Struct):
    """A row of a Mooncake trace."""

    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int]


def mooncake(row: MooncakeRow, line: int) -> Sequence[Got]:
    """Stamps are whole milliseconds; there is one hash id for each 512 tokens begun."""
    asked = needed(length(row.input_length, "input_length"), "input_length")
    if len(row.hash_ids) != -(-asked // MOONCAKE_BLOCK_TOKENS):
        raise Broken("blocks_wrong", f"{len(row.hash_ids)} hash_ids, input_length {asked}")
    return (
        Entry(
            line=line,
            at_ns=number_ns(row.timestamp, "ms"),
            input_tokens=asked,
            output_tokens=length(row.output_length, "output_length"),
            hash_ids=blocks(row.hash_ids),
        ),
    )
