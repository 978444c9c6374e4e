"""The answer that the page on other tools takes apart: our row by our reader and figures, theirs by their formulas.

The formulas are those of the sources that the page names.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from nilometer.core.record import Record
from nilometer.metrics import request
from nilometer.wire.dialects import DIALECTS

from .made import at, frames

FOLDER = Path(__file__).parents[3] / "docs" / "explanation"
PAGES = [FOLDER / "why-other-tools-differ.md", FOLDER / "why-other-tools-differ.zh-CN.md"]


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    frame = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


TOKENS = 13
CALLED, SENT, ROLE, FINISH, USAGE, DONE = 0, 10, 60, 452, 454, 460
MATTER = (210, 290, 370, 450)
FIRST, LAST = MATTER[0], MATTER[-1]
USED = {"prompt_tokens": 5, "completion_tokens": TOKENS, "total_tokens": 5 + TOKENS}
STREAM = (
    (ROLE, chunk({"role": "assistant", "content": ""})),
    *zip(MATTER, map(chunk, [{"content": "Mud"}, *[{"content": " rose by four cubits"}] * 3]), strict=True),
    (FINISH, chunk({}, "stop")),
    (USAGE, b"data: " + json.dumps({"id": "c", "choices": [], "usage": USED}).encode() + b"\n\n"),
    (DONE, b"data: [DONE]\n\n"),
)
"""(ms from the call, bytes)"""


def read() -> Record:
    """The answer as our reader sees it, sent when the connection stood."""
    reader = DIALECTS["chat"].reader(True, False)
    seen_s = [ms / 1000 for ms, data in STREAM for _ in range(reader.feed(data))]
    answer = reader.close()
    assert answer.output_tokens == TOKENS
    return Record(
        id="r", seq=0, phase="measured", outcome="ok",
        connect_ns=SENT * 1_000_000, sent_ns=at(SENT / 1000), end_ns=at(DONE / 1000),
        first_token_ns=at(seen_s[0]), last_token_ns=at(seen_s[-1]),
        output_tokens=answer.output_tokens, token_source=answer.token_source, frames=frames(seen_s),
    )  # fmt: skip


def gaps(moments: tuple[int, ...]) -> str:
    return ", ".join(str(later - earlier) for earlier, later in pairwise(moments))


def shown(ms: float) -> str:
    return f"{ms:.1f}"


def ours() -> tuple[str, ...]:
    record = read()
    told = request.shown_ms(record)
    between = ", ".join(f"{gap / 1e6:.0f}" for gap in request.frame_gaps_ns(record.frames))
    return (f"{told['ttft_ms']:.0f}", shown(told["tpot_ms"] or 0), between, f"{told['e2e_ms']:.0f}")


ROWS = {
    "vLLM": (str(ROLE), shown((FINISH - ROLE) / (TOKENS - 1)), gaps((ROLE, *MATTER, FINISH)), str(FINISH)),
    "SGLang": (str(FIRST), shown((DONE - FIRST) / (TOKENS - 1)), gaps(MATTER), str(DONE)),
    "aiperf": (str(FIRST), shown((LAST - FIRST) / (TOKENS - 1)), gaps(MATTER), str(LAST)),
    "genai-perf": (str(FIRST), shown((LAST - FIRST) / (TOKENS - 1)), "-", str(LAST)),
    "guidellm": (
        str(FIRST - SENT),
        f"{shown((LAST - SENT) / TOKENS)} / {shown((LAST - FIRST) / (TOKENS - 1))}",
        "-",
        str(DONE - SENT),
    ),
    "nilometer": ours(),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.parametrize("tool", ROWS)
def test_the_row_of_each_tool_follows_from_the_frames(page: Path, tool: str) -> None:
    (row,) = re.findall(rf"^\| {tool} \|(.*)\|$", page.read_text("utf-8"), re.MULTILINE)
    assert tuple(cell.strip() for cell in row.split("|")) == ROWS[tool]


def test_no_itl_where_a_frame_holds_several_tokens() -> None:
    record = read()
    assert not request.one_token_a_frame(record)
    assert TOKENS / len(record.frames) == pytest.approx(3.25)
    assert request.connect_ns(record) == SENT * 1_000_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_these_moments(page: Path) -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", page.read_text("utf-8"), re.MULTILINE)
    told = [int(ms) for row in rows for ms in row.split(",")]
    assert told == [CALLED, SENT, *(ms for ms, _ in STREAM)]
