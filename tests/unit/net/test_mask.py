"""Where secrets are found, and that a known one survives in no writing of it."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.net.mask import Mask, in_headers, secrets_in


def test_headers_give_values_schemes_and_pairs() -> None:
    basic = b64encode(b"user:pass").decode()
    assert in_headers([("Authorization", "Bearer sk-12345")]) == {"Bearer sk-12345", "sk-12345"}
    assert in_headers([("Authorization", f"Basic {basic}")]) == {f"Basic {basic}", basic, "user:pass", "pass"}
    assert in_headers([("X-Debug", "1"), ("X-Env", "staging")]) == {"staging"}, "a short value is no secret"
    assert in_headers([("X-Api-Key", "1234")]) == {"1234"}, "unless its name says so"
    assert in_headers([("Authorization", "Basic ***")]) >= {"Basic ***"}


def test_addresses_give_credentials_and_keys() -> None:
    found = secrets_in("http://us:p%40ss@h:1/v1?api_key=q%2Fv&version=2")
    assert found == {"us:p@ss", "p@ss", b64encode(b"us:p@ss").decode(), "q%2Fv"}
    assert secrets_in("embedded") == set()


@pytest.mark.parametrize(
    "write",
    [
        str,
        quote,
        quote_plus,
        lambda s: quote(s, safe=""),
        lambda s: json.dumps(s)[1:-1],
        html.escape,
        lambda s: f"a{s}b {s}",
    ],
)
@given(
    secret=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8, max_size=20).filter(
        lambda s: s == s.strip()
    )
)
def test_no_writing_of_a_secret_survives(write: object, secret: str) -> None:
    assert callable(write)
    written = write(secret)
    told = Mask([secret])(f"error: {written}!")
    assert secret not in told or secret in "error: ***!"
    assert written not in told or written in "error: ***!"
    assert "***" in told


def test_what_is_cut_off_by_the_end_goes_too() -> None:
    mask = Mask(["sk-canary-0123456789"])
    assert mask("bad key sk-canary-01") == "bad key ***"
    assert mask("bad key sk-c") == "bad key ***"
    assert mask("bad key sk") == "bad key sk"


def test_short_secrets_go_only_where_they_stand_alone() -> None:
    mask = Mask(["pass"])
    assert mask("user:pass, passing") == "user:***, passing"
    assert Mask(["ab", ""])("ab cab") == "ab cab"


def test_the_longest_goes_first() -> None:
    assert Mask(["sk-12345678", "Bearer sk-12345678"])("got Bearer sk-12345678") == "got ***"


def test_a_mask_of_nothing_changes_nothing() -> None:
    assert Mask()("anything") == "anything"
    assert Mask(["c4n4ry00"]).all({"a": "c4n4ry00", "n": 3, "x": None}) == {"a": "***", "n": 3, "x": None}
