"""Flags as values: defaults that the user's own replace."""

import pytest

from nilometer.core.errors import SpecError
from nilometer.engines import flags
from nilometer.engines.flags import Flag

KNOWN = frozenset(
    ["-np", "-c", "-t", "--threads-http", "--metrics", "--slots", "--no-webui", "--no-cache-prompt", "--cache-ram"]
)


def told(users: list[str], known: frozenset[str] = KNOWN) -> list[str]:
    return flags.merged(flags.defaults(slots=4, context_tokens_per_slot=512, threads=2), users, known)


def test_defaults_give_every_slot_its_context_and_no_flattering_cache() -> None:
    words = told([])
    assert words[:6] == ["-np", "4", "-c", "2048", "-t", "2"]
    assert "--no-cache-prompt" in words
    assert flags.value_of(("--cache-ram",), words) == "0"
    assert "--metrics" in words


def test_http_threads_outnumber_the_connections_of_a_client() -> None:
    assert flags.value_of(("--threads-http",), told([])) == "256"
    many = flags.merged(flags.defaults(slots=400, context_tokens_per_slot=8, threads=1), [], KNOWN)
    assert flags.value_of(("--threads-http",), many) == "808"


@pytest.mark.parametrize("name", ["-np", "--parallel"])
def test_a_flag_of_the_users_replaces_the_default_under_any_name(name: str) -> None:
    words = told([name, "16"])
    assert flags.value_of(flags.SLOTS, words) == "16"
    assert [word for word in words if word in flags.SLOTS] == [name]


def test_the_contrary_of_a_default_replaces_it_too() -> None:
    words = told(["--cache-prompt"])
    assert "--no-cache-prompt" not in words
    assert words[-1] == "--cache-prompt"


def test_what_a_build_does_not_know_is_left_out_but_what_is_needed_stays() -> None:
    assert told([], frozenset()) == ["-np", "4", "-c", "2048", "-t", "2"]
    assert told([], frozenset(["--parallel", "--no-ui"]))[:2] == ["--parallel", "4"]
    assert "--no-ui" in told([], frozenset(["--no-ui"]))


def test_flags_are_split_as_a_shell_would() -> None:
    assert flags.split("-np 4 --chat-template 'a b'") == ["-np", "4", "--chat-template", "a b"]
    with pytest.raises(SpecError) as caught:
        flags.split("-np '4")
    assert caught.value.slug == "engine_spec_bad"


def test_value_of_takes_the_last_and_knows_absence() -> None:
    assert flags.value_of(("-c",), ["-c", "1", "-c", "2"]) == "2"
    assert flags.value_of(("-c",), ["-np", "1"]) is None
    assert flags.value_of(("-c",), ["-c"]) is None


def test_numbers_are_whole_numbers() -> None:
    assert flags.number_of(("-c",), ["-c", "12"]) == 12
    assert flags.number_of(("-c",), []) is None
    with pytest.raises(SpecError) as caught:
        flags.number_of(("-c", "--ctx-size"), ["-c", "many"])
    assert caught.value.params == {"flag": "-c", "value": "many"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3"])
def test_an_engine_of_ours_listens_on_the_loopback_only(host: str) -> None:
    with pytest.raises(SpecError) as caught:
        flags.refuse_other_hosts(["--host", host])
    assert caught.value.slug == "engine_host_bad"
    flags.refuse_other_hosts(["--host", "127.0.0.1"])
    flags.refuse_other_hosts([])


def test_without_drops_a_flag_with_its_value() -> None:
    assert flags.without(("--port", "--host"), ["-np", "1", "--port", "80", "--metrics"]) == ["-np", "1", "--metrics"]


def test_flag_names_come_from_one_place() -> None:
    assert Flag(("-x",)) == Flag(("-x",), None, needed=False, opposites=())
