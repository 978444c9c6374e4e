"""Each check's judgment on what was seen, without a target."""

from __future__ import annotations

import time
from typing import Any

import pytest

from nilometer.core.clock import NS_PER_MS
from nilometer.core.errors import SpecError, TargetError
from nilometer.experiment.check import Check
from nilometer.experiment.doctor_target import (
    WALK,
    Seen,
    _after,
    _own_other_family,
    auth,
    buffered,
    length_fields,
    model_list,
    proxy_variables,
    replicas,
    template,
    tls,
)
from nilometer.load.probe_facts import Model, Served
from nilometer.load.probe_terms import Terms
from nilometer.net.endpoint import parse
from nilometer.net.fetch import Handshake

MS = NS_PER_MS
NOW_S = 1_800_000_000.0


@pytest.mark.parametrize(
    ("url", "environ", "state", "value"),
    [
        ("http://h:1", {}, "skipped", None),
        ("http://h:1", {"HTTP_PROXY": "http://p:1"}, "warn", "HTTP_PROXY"),
        ("http://h:1", {"http_proxy": "http://p:1"}, "warn", "http_proxy"),
        ("http://h:1", {"HTTPS_PROXY": "http://p:1"}, "skipped", None),
        ("https://h:1", {"HTTPS_PROXY": "http://p:1"}, "warn", "HTTPS_PROXY"),
        ("https://h:1", {"ALL_PROXY": "http://p:1"}, "warn", "ALL_PROXY"),
        ("http://h:1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "a,h"}, "ok", "HTTP_PROXY"),
        ("http://x.h:1", {"HTTP_PROXY": "http://p:1", "no_proxy": ".h"}, "ok", "HTTP_PROXY"),
        ("http://h:1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, "ok", "HTTP_PROXY"),
        ("http://h:1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "other"}, "warn", "HTTP_PROXY"),
    ],
)
def test_a_proxy_variable_matters_where_it_would_be_followed(
    url: str, environ: dict[str, str], state: str, value: str | None
) -> None:
    check = proxy_variables(parse(url), None, environ)
    assert (check.state, check.value) == (state, value)


def test_a_proxy_is_told_without_its_secret() -> None:
    proxy = "http://user:canary@p:1"
    for given, environ in ((None, {"ALL_PROXY": proxy}), (None, {"ALL_PROXY": "user:canary@p:1"}), (proxy, {})):
        check = proxy_variables(parse("http://h"), given, environ)
        assert check.params["proxy"] == "http://***@p:1"
        assert "canary" not in str(check)


@pytest.mark.parametrize(("days", "state"), [(400, "ok"), (14, "ok"), (13, "warn"), (-1, "warn")])
def test_a_certificate_that_ends_soon_is_a_warning(days: int, state: str) -> None:
    expires = time.strftime("%b %d %H:%M:%S %Y GMT", time.gmtime(NOW_S + days * 86_400 + 60))
    check = tls(True, Handshake("TLSv1.3", "h", expires), NOW_S)
    assert (check.state, check.params["days"], check.value) == (state, days, "TLSv1.3")


def test_tls_is_skipped_without_and_told_where_the_certificate_is_not_checked() -> None:
    assert tls(False, Handshake(), NOW_S).state == "skipped"
    assert tls(True, Handshake("TLSv1.2"), NOW_S).said == "unchecked"


def test_a_missing_model_list_is_told_and_its_model_where_one_is_named() -> None:
    there = Served(models=(Model("a"), Model("b")), below_v1=True)
    assert (model_list(there, "b").state, model_list(there, "b").value) == ("ok", 2)
    assert [(one.state, one.said) for one in (model_list(Served(), None), model_list(Served(), "m"))] == [
        ("ok", "unneeded"),
        ("ok", "named"),
    ]


def test_a_key_is_told_of_but_not_told() -> None:
    assert [auth(sent).value for sent in ((), ["Accept"], ["Authorization"], ["api-key"], ["X-Reed-Key"])] == [
        *("none", "none"),
        *("key", "key", "key"),
    ]


@pytest.mark.parametrize(
    ("reads_ms", "made_ms", "held"),
    [
        ([(500, 900)], 300, True),  # 300 ms of generating, one read
        ([(500, 300), (505, 900)], 300, True),
        ([(200, 60), (220, 120), (500, 900)], 300, False),
        ([(3, 900)], 1, False),  # a server as quick as that may well send all at once
        ([(500, 900)], -40, False),  # the first request was the slower one: nothing can be told
        ([], 300, False),
    ],
)
def test_a_stream_is_held_back_where_its_frames_come_quicker_than_they_are_made(
    reads_ms: list[tuple[int, int]], made_ms: int, held: bool
) -> None:
    assert buffered([(at * MS, size) for at, size in reads_ms], made_ms * MS) is held


def test_fields_and_template_are_told_as_found() -> None:
    taken = Terms(api="chat", model="m", length_fields=("ignore_eos",))
    told = [length_fields((), taken, {}).state, template(None, "chat").state, template(5, "chat").value]
    assert told == ["skipped", "skipped", 5]


def test_an_api_without_a_template_or_an_answer_is_told_so() -> None:
    encoder = Terms(api="embeddings", model="m")
    assert (template(5, "chat").said, template(5, "embeddings").said) == (None, "bare")
    assert (length_fields((), encoder, {}).state, length_fields((), encoder, {}).said) == ("skipped", "none")


@pytest.mark.parametrize(
    ("apart", "value", "said"),
    [
        ({None: 7, "ignore_eos": 16, "min_tokens": 7}, "ignore_eos", None),
        ({None: 7, "ignore_eos": 16, "min_tokens": 16}, "ignore_eos, min_tokens", None),
        ({None: 7, "ignore_eos": 7, "min_tokens": 7}, "ignore_eos, min_tokens", "together"),
        ({None: 16, "ignore_eos": 16, "min_tokens": 16}, "ignore_eos, min_tokens", "unneeded"),
        ({}, "ignore_eos, min_tokens", "together"),
    ],
)
def test_a_field_is_honoured_where_it_makes_the_difference(
    apart: dict[str | None, int | None], value: str, said: str | None
) -> None:
    fields = ("ignore_eos", "min_tokens")
    check = length_fields(fields, Terms(api="chat", model="m", length_fields=fields), apart)
    assert (check.value, check.said) == (value, said)


A, B = ("m",), ("n",)


@pytest.mark.parametrize(
    ("seen", "state", "value"),
    [
        ([Seen(None, "200", A)] * 8, "ok", 8),
        ([Seen(None, "200", A), Seen(None, "503")] * 4, "warn", 4),
        ([Seen(None, "503")] * 7 + [Seen(None, "200", A)], "warn", 7),  # the answer that is right is the usual one
        ([Seen(None, "200", A)] * 5 + [Seen(None, "200", B)] * 3, "warn", 3),
        ([Seen(None, "200", A)] * 5 + [Seen(None, "429")] * 3, "ok", 5),
        ([Seen("10.0.0.1", "200", A), Seen("10.0.0.2", "connect_refused")] * 4, "warn", 4),
        ([Seen("127.0.0.1", "200", A), Seen("::1", "connect_refused")] * 4, "ok", 4),
        ([], "skipped", None),
    ],
)
def test_replicas_are_alike_or_it_is_told_how_many_differ(seen: list[Seen], state: str, value: int | None) -> None:
    check = replicas(seen, 1)
    assert (check.state, check.value) == (state, value)


def test_the_replica_that_differs_is_named() -> None:
    check = replicas([Seen("10.0.0.1", "200", A)] * 4 + [Seen("10.0.0.2", "404")], 2)
    assert (check.params["where"], check.params["came"], check.params["differ"]) == ("10.0.0.2", "404", 1)
    assert not _own_other_family(Seen("10.0.0.2", "connect_refused"))


@pytest.mark.parametrize(
    ("slug", "told", "at"),
    [
        ("connect_refused", 1, "address"),
        ("certificate_refused", 2, "tls"),
        ("unauthorised", 3, "auth"),
        ("key_refused", 3, "auth"),
        ("unauthorised", 4, "auth"),
        ("path_not_found", 4, "base_url"),
        ("request_failed", 4, "request"),
        ("timeout", 4, "request"),  # the address did answer
        ("timeout", 7, "stream"),
        ("count_failed", 9, "template"),
        ("never_heard_of", 4, "request"),
    ],
)
def test_an_error_stands_at_its_check_and_no_check_is_missing(slug: str, told: int, at: str) -> None:
    left: list[Check] = list(_after(TargetError(slug), set(WALK[:told])))
    assert [check.slug for check in left] == list(WALK[told:])
    states: dict[str, Any] = {check.slug: check.state for check in left}
    assert states.pop(at) == "fail"
    assert set(states.values()) <= {"skipped"}


def test_an_error_after_all_is_told_still_has_a_line() -> None:
    assert [check.state for check in _after(SpecError("odd"), set(WALK[:-1]))] == ["fail"]
