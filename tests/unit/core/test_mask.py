"""A run's secrets in what others say: in every spelling, cut off at the end, and no more than them."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.errors import ArchiveError, EngineError
from nilometer.core.mask import BEGUN_CHARS, NO_SECRETS, WORD_CHARS, Mask
from nilometer.core.secrets import in_header, in_url


def quote_twice(text: str) -> str:
    return quote(quote(text))


SECRET = """a/b+c&d="é'<f> \\g"""
WAYS = [
    SECRET,
    json.dumps(SECRET)[1:-1],
    json.dumps(SECRET, ensure_ascii=False)[1:-1],
    json.dumps(SECRET)[1:-1].replace("/", "\\/").replace("&", "\\u0026").replace("<", "\\u003C"),
    quote(SECRET, safe=""),
    quote(SECRET),
    quote_plus(SECRET).lower(),
    html.escape(SECRET),
    html.escape(SECRET).replace("&#x27;", "&#39;"),
    repr(SECRET)[1:-1],
    SECRET.encode().decode("latin-1"),
    SECRET.encode("latin-1").decode("utf-8", "replace"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_found_however_it_is_spelled(way: str) -> None:
    assert Mask([SECRET])(f"got {way}, twice: {way}.") == "got ***, twice: ***."


@pytest.mark.parametrize("way", WAYS)
def test_the_beginning_of_a_secret_where_the_text_was_cut_is_no_less_hidden(way: str) -> None:
    mask = Mask([SECRET])
    begun = [f"got {way[:end]}" for end in range(len(way) + 1)]
    hidden = [text for text in begun if mask.cut(text) == "got ***"]
    assert hidden == begun[-len(hidden) :]  # from some length on all of them
    assert mask.cut("got " + SECRET[:BEGUN_CHARS]) == "got ***"
    assert mask.cut("got " + SECRET[: BEGUN_CHARS - 1]) == "got " + SECRET[: BEGUN_CHARS - 1]


def test_white_space_within_a_secret_may_have_run_together() -> None:
    assert Mask(["two   words"])("said two words") == "said ***"


def test_of_two_secrets_the_one_that_holds_the_other_goes_first() -> None:
    assert Mask(["password", "user:password"])("user:password and password") == "*** and ***"


def test_a_short_secret_goes_only_where_it_stands_alone_and_a_shorter_one_not_at_all() -> None:
    mask = Mask(["pass", "", "ab"])
    assert mask("user:pass, passing, bypass, ab") == "user:***, passing, bypass, ab"
    assert mask("my_pass, got%20pass%2c, line\\npass, \\u0026pass") == "my_***, got%20***%2c, line\\n***, \\u0026***"
    assert Mask(["sk-1234"]).cut("task-1234, sk-12345, sk-123") == "task-1234, sk-12345, ***"


def test_a_key_and_credentials_are_found_alone_and_as_they_were_sent() -> None:
    mask = Mask([*in_header("Authorization", "Bearer sk-12345"), *in_url("http://us:p%40ssword@h")])
    assert mask("Bearer sk-12345") == "Bearer ***"
    assert mask("invalid key: sk-12345") == "invalid key: ***"
    assert mask("Basic dXM6cEBzc3dvcmQ=, us:p@ssword, p@ssword, us%3Ap%40ssword") == "Basic ***=, ***, ***, ***"


def test_a_word_is_cut_and_a_secret_in_its_end_with_it() -> None:
    assert NO_SECRETS.word("x" * 900) == "x" * WORD_CHARS
    assert NO_SECRETS.word("stop") == "stop"
    long = "x" * (WORD_CHARS - 8) + "canary-header" + "x" * 50
    assert Mask(["canary-header"]).word(long) == "x" * (WORD_CHARS - 8) + "***"


@pytest.mark.parametrize(
    "write",
    [str, quote, quote_plus, lambda s: quote(s, safe=""), lambda s: json.dumps(s)[1:-1], html.escape, quote_twice],
)
@given(
    secret=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8, max_size=20).filter(
        lambda s: s == " ".join(s.split())
    )
)
def test_no_writing_of_a_secret_survives(write: Callable[[str], str], secret: str) -> None:
    written = write(secret)
    told = Mask([secret, quote(secret)])(f"error: {written}!")
    assert written not in told or written in "error: ***!"
    assert "***" in told


def test_the_parameters_of_an_error_and_of_what_it_came_from_are_masked() -> None:
    mask = Mask(["canary-1"])
    cause = EngineError("engine_died", detail="said canary-1", status=3)
    fault = ArchiveError("run_not_archived", file="canary-1", why=None)
    fault.__cause__ = cause
    mask.error(fault)
    assert (fault.params, cause.params) == ({"file": "***", "why": None}, {"detail": "said ***", "status": 3})
    assert "canary" not in str(fault) + repr(cause)
