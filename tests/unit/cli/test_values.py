"""Values as they are typed."""

from __future__ import annotations

import click
import pytest

from nilometer.cli.values import END, HEADER, LABEL, LIMITS, MOMENT, PRICE, RAMP, SECONDS, SHARE, WAIT


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("500ms", 0.5), ("2m", 120), ("1h", 3600), ("7", 7), ("0", 0), (".5s", 0.5)]
)
def test_seconds(text: str, seconds: float) -> None:
    assert SECONDS.convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1d", "1 s x", "nan", "inf", "1e3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="60s"):
        SECONDS.convert(text, None, None)


@pytest.mark.parametrize("text", ["0", "0s", "-1s"])
def test_a_wait_of_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        WAIT.convert(text, None, None)
    assert WAIT.convert("1m", None, None) == 60


def test_a_price_by_its_parts() -> None:
    assert PRICE.convert("in=0.15, out=0.60,currency=CNY", None, None) == {
        "input_per_million": 0.15,
        "output_per_million": 0.60,
        "currency": "CNY",
    }
    assert PRICE.convert("hour=2.5,devices=8", None, None) == {"device_hour": 2.5, "devices": 8}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.15",
        "in=",
        "in=cheap",
        "tokens=1",
        "devices=1.5",
        "in=1,,out=2",
        "hour=nan",
        "hour=inf",
        "hour=-1",
        "hour=1e13",
        "hour=2,devices=0",
        "devices=-3",
    ],
)
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"in=0\.15"):
        PRICE.convert(text, None, None)


def test_ramp_may_be_auto() -> None:
    assert RAMP.convert("auto", None, None) == "auto"
    assert RAMP.convert("3s", None, None) == 3


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.01", 0.01), ("100%", 1), ("0", 0)])
def test_share(text: str, share: float) -> None:
    assert SHARE.convert(text, None, None) == pytest.approx(share)


@pytest.mark.parametrize("text", ["101%", "-1%", "x", "2"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        SHARE.convert(text, None, None)


def test_limits() -> None:
    assert LIMITS.convert("connect=5s,first=none,total=2m", None, None) == {
        "connect_s": 5.0,
        "first_s": "none",
        "total_s": 120.0,
    }


@pytest.mark.parametrize("text", ["5s", "idle", "idle=", "speed=5s", "idle=x"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        LIMITS.convert(text, None, None)


def test_pairs_keep_further_separators() -> None:
    assert HEADER.convert("X-Where: a:b", None, None) == ("X-Where", "a:b")
    assert LABEL.convert("k=v=w", None, None) == ("k", "v=w")


def test_a_bad_pair_is_refused_without_saying_it_back() -> None:
    with pytest.raises(click.BadParameter) as refused:
        HEADER.convert("secret-canary", None, None)
    assert "canary" not in str(refused.value)
    with pytest.raises(click.BadParameter):
        HEADER.convert("X: a\r\nY: b", None, None)


DAY_NS = 86_400 * 10**9
NOW_NS = 1_786_000_000 * 10**9


@pytest.mark.parametrize(
    ("text", "ago_ns"), [("30d", 30 * DAY_NS), ("12h", DAY_NS // 2), ("2w", 14 * DAY_NS), ("90m", DAY_NS // 16)]
)
def test_a_moment_so_long_ago(text: str, ago_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOW_NS)
    assert MOMENT.convert(text, None, None) == END.convert(text, None, None) == NOW_NS - ago_ns


@pytest.mark.parametrize(
    ("text", "begin_s", "end_s"),
    [
        ("1970-01-02", 86_400, 172_800),
        ("1970-01-01T00:10", 600, 600),
        ("1970-01-01 00:00:07", 7, 7),
        ("1970-01-01T01:00+01:00", 0, 0),
    ],
)
def test_a_moment_by_its_date(text: str, begin_s: int, end_s: int) -> None:
    assert (MOMENT.convert(text, None, None), END.convert(text, None, None)) == (begin_s * 10**9, end_s * 10**9)


@pytest.mark.parametrize(
    "text", ["", "30", "d", "-3d", "30y", "1.5d", "yesterday", "2026-13-01", "1901-01-01", "99999w"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="30d"):
        MOMENT.convert(text, None, None)
