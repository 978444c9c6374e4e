"""Laws of what is shown: no secret of an address survives it, wherever in the address it stands."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from nilometer.core.errors import SpecError
from nilometer.core.secrets import mask_url
from nilometer.net.endpoint import parse

CANARY = "k4n4ry"
KEYS = st.sampled_from(
    ["key", "api_key", "Api-Key", "apikey", "token", "ACCESS_TOKEN", "secret", "password", "pwd", "auth", "sig"]
)
SIGNS = st.sampled_from(["", "=", ";", "#", "=#", ";;", "@", "/", "?", "//u:", ";x=", "#x="])


@given(
    lead=st.sampled_from(["?", "?x=1&", "?x=1;", "?x&", "#", "?x=1#", "?x=http://h/?"]),
    prefix=st.sampled_from(["", "x_", "X-"]),
    key=KEYS,
    before=SIGNS,
    after=SIGNS,
    rest=st.sampled_from(["", "&y=2", "&y=2#part"]),
)
def test_the_value_of_a_key_does_not_survive(
    lead: str, prefix: str, key: str, before: str, after: str, rest: str
) -> None:
    url = f"http://h/v1{lead}{prefix}{key}={before}{CANARY}{after}{rest}"
    shown = mask_url(url)
    assert CANARY not in shown
    assert CANARY not in parse(url).shown
    assert mask_url(shown) == shown
    assert shown.endswith(rest)


@given(st.text(max_size=12), st.text(max_size=12))
@example("http://u:", "@h:port")
@example("://", "@")
def test_what_is_typed_before_an_at_sign_is_not_told_by_a_refusal(before: str, after: str) -> None:
    try:
        parse(f"{before}{CANARY}@{after}")
    except SpecError as refused:
        assert refused.slug == "target_url"
        assert CANARY not in str(refused)
