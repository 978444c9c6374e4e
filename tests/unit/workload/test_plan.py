from __future__ import annotations

from itertools import islice

import msgspec
import pytest
from tests.unit.workload import toy
from tests.unit.workload.test_traffic import workload
from tests.unit.workload.toy import Counting

from nilometer import __version__
from nilometer.core.errors import SpecError
from nilometer.core.record import Call
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.workload import lengths, plan, ruler
from nilometer.workload.entry import Part, Row
from nilometer.workload.lengths import Fixed
from nilometer.workload.ruler import CHEAP, Ruler
from nilometer.workload.scenarios import kinds, of_rows
from nilometer.workload.traffic import lengths_of, totals_of

COUNT = Counting(toy.pieces, template=11)


@pytest.fixture(scope="module")
def made() -> Ruler:
    return ruler.measure(COUNT, toy.text(), 4000, CHEAP, "server_tokenizer")


def body(prompt: str, max_tokens: int, turns: object = ()) -> bytes:
    return msgspec.json.encode({"prompt": prompt, "max_tokens": max_tokens})


def spec(**prompts: object) -> Spec:
    return Spec(
        target="http://t", prompts=msgspec.convert({"input_tokens": "64", "output_tokens": "16"} | prompts, Prompts)
    )


def taken(made: Ruler, asked: Spec, number: int = 20, salt: str = "run") -> list[Call]:
    made_calls = plan.calls(asked, made, body=body, host="h:1", target="/v1/completions", salt=salt)
    return list(islice(made_calls, number))


def test_a_call_is_a_whole_request(made: Ruler) -> None:
    headers = [("Authorization", "Bearer k")]
    call = next(plan.calls(spec(), made, body=body, host="h:1", target="/v1/x?k=v", headers=headers))
    head, _, payload = call.request.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /v1/x?k=v HTTP/1.1",
        b"Host: h:1",
        f"User-Agent: nilometer/{__version__}".encode(),
        b"Accept: text/event-stream",
        b"Accept-Encoding: identity",
        b"Content-Type: application/json",
        b"Authorization: Bearer k",
        b"Content-Length: %d" % len(payload),
    ]
    sent = msgspec.json.decode(payload)
    assert COUNT(sent["prompt"]) == 64
    assert sent["max_tokens"] == 16


def test_calls_are_numbered_and_say_what_was_asked(made: Ruler) -> None:
    calls = taken(made, spec(input_tokens="uniform:20,90", output_tokens="uniform:5,9"))
    assert [call.seq for call in calls] == list(range(20))
    assert {call.due_ns for call in calls} == {None}
    for call in calls:
        sent = msgspec.json.decode(call.request.partition(b"\r\n\r\n")[2])
        assert COUNT(sent["prompt"]) == call.asked_input
        assert sent["max_tokens"] == call.asked_output


def test_the_length_of_a_body_in_another_script_is_counted_in_bytes(made: Ruler) -> None:
    def chinese(prompt: str, max_tokens: int, turns: object = ()) -> bytes:
        return f"水位{prompt[:3]}{max_tokens}".encode()

    request = next(plan.calls(spec(), made, body=chinese, host="h", target="/")).request
    head, _, payload = request.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(payload)}".encode() in head
    assert len(payload) == 11


def test_whole_answers_are_accepted_as_json(made: Ruler) -> None:
    asked = msgspec.structs.replace(spec(), stream=False)
    assert b"\r\nAccept: application/json\r\n" in next(plan.calls(asked, made, body=body, host="h", target="/")).request


def test_a_run_can_be_planned_again_to_the_byte(made: Ruler) -> None:
    asked = spec(input_tokens="lognormal:100,300", seed=5)
    assert taken(made, asked) == taken(made, asked)


def test_a_repeat_has_the_lengths_and_the_arrivals_of_the_first_run_but_other_texts(made: Ruler) -> None:
    load = Load(rate_per_s=5.0)
    asked = msgspec.structs.replace(spec(input_tokens="uniform:50,500"), load=load)
    first, second = taken(made, asked, salt="one"), taken(made, asked, salt="two")
    assert [(c.due_ns, c.asked_input) for c in first] == [(c.due_ns, c.asked_input) for c in second]
    assert not {c.request for c in first} & {c.request for c in second}


def test_an_open_loop_says_when_each_call_is_due(made: Ruler) -> None:
    load = Load(rate_per_s=2.0, arrivals="constant")
    calls = taken(made, msgspec.structs.replace(spec(), load=load), 3)
    assert [call.due_ns for call in calls] == [0, 500_000_000, 1_000_000_000]


def test_calls_are_made_one_at_a_time_and_end_only_at_a_limit(made: Ruler) -> None:
    asked = []

    def watched(prompt: str, max_tokens: int, turns: object = ()) -> bytes:
        asked.append(prompt)
        return b""

    calls = plan.calls(spec(), made, body=watched, host="h", target="/", limit=3)
    assert asked == []
    next(calls)
    assert len(asked) == 1
    assert len(list(calls)) == 2


def test_lengths_that_were_read_from_a_file_are_handed_in(made: Ruler) -> None:
    asked = spec(input_tokens="empirical:lens.txt")
    seen = lengths.parse("empirical:lens.txt", values=[77])
    mix = kinds(asked.prompts, lambda text: seen if text.startswith("empirical") else lengths.parse(text))
    call = next(plan.calls(asked, made, body=body, host="h", target="/", mix=mix))
    assert call.asked_input == 77


def test_a_common_prefix_is_that_of_the_spec(made: Ruler) -> None:
    calls = taken(made, spec(input_tokens="300", shared_prefix_tokens=100))
    prompts = [msgspec.json.decode(call.request.partition(b"\r\n\r\n")[2])["prompt"] for call in calls]
    start = prompts[0].split()[:50]
    assert all(prompt.split()[:50] == start for prompt in prompts)


@pytest.mark.parametrize(
    ("prompts", "params"),
    [
        ({"input_tokens": "11"}, {"asked": 11, "least": 12}),
        ({"input_tokens": "300", "shared_prefix_tokens": 300}, {"asked": 300, "least": 301}),
    ],
)
def test_prompts_shorter_than_can_be_made_are_refused_at_once(
    made: Ruler, prompts: dict[str, object], params: dict[str, int]
) -> None:
    with pytest.raises(SpecError) as refused:
        plan.calls(spec(**prompts), made, body=body, host="h", target="/")
    assert (refused.value.slug, refused.value.params) == ("input_too_short", params)


def test_more_than_the_context_holds_is_refused_at_once(made: Ruler) -> None:
    plan.calls(spec(), made, body=body, host="h", target="/", context_tokens=80)
    with pytest.raises(SpecError) as refused:
        plan.calls(spec(), made, body=body, host="h", target="/", context_tokens=79)
    assert (refused.value.slug, refused.value.params) == ("context_too_short", {"asked": 80, "context": 79})


def test_what_generates_nothing_is_asked_for_no_answer_and_needs_no_room_for_one(made: Ruler) -> None:
    (kind,) = kinds(spec().prompts)
    asked = plan.calls(
        spec(), made, body=body, host="h", target="/", context_tokens=64, mix=[kind._replace(outputs=lengths.NOTHING)]
    )
    call = next(asked)
    assert (call.asked_input, call.asked_output) == (64, None)


def test_a_rare_length_out_of_bounds_does_not_stop_a_run(made: Ruler) -> None:
    # P(below 12) = P(z < ln(12/200)/0.8422) = 0.04 %, P(in + out above 4000) = 0.02 %
    plan.calls(spec(input_tokens="lognormal:200,800"), made, body=body, host="h", target="/", context_tokens=4000)


def test_an_own_header_replaces_ours() -> None:
    head = plan.head(host="h", target="/", headers=[("user-agent", "mine"), ("HOST", "other")])
    assert head == (
        b"POST / HTTP/1.1\r\nHOST: other\r\nuser-agent: mine\r\nAccept: text/event-stream\r\n"
        b"Accept-Encoding: identity\r\nContent-Type: application/json\r\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "slug"),
    [
        ("X-A", "k\r\nX-B: 1", "header_invalid"),
        ("X-A", "k\x00", "header_invalid"),
        ("X-A", "水", "header_invalid"),
        ("X A", "k", "header_invalid"),
        ("", "k", "header_invalid"),
        ("Content-Length", "3", "header_reserved"),
        ("transfer-encoding", "chunked", "header_reserved"),
    ],
)
def test_headers_that_would_break_the_request_are_refused_without_telling_their_value(
    name: str, value: str, slug: str
) -> None:
    with pytest.raises(SpecError) as refused:
        plan.head(host="h", target="/", headers=[(name, value)])
    assert (refused.value.slug, refused.value.params) == (slug, {"header": name})


def test_unknown_arrivals_are_refused_before_a_call_is_taken(made: Ruler) -> None:
    asked = msgspec.structs.replace(spec(), load=Load(rate_per_s=1.0, arrivals="sometimes"))
    with pytest.raises(SpecError) as refused:
        plan.calls(asked, made, body=body, host="h", target="/")
    assert refused.value.slug == "arrivals_unknown"


def test_a_protocol_may_ask_by_another_method() -> None:
    assert plan.head(host="h", target="/x", method="PUT").startswith(b"PUT /x HTTP/1.1\r\n")


ALTERNATING = ((3900, 20), (20, 3900))
TOGETHER = ((3900, 3900), (20, 20))


@pytest.mark.parametrize(("pairs", "fits"), [(ALTERNATING, True), (TOGETHER, False)])
def test_the_rows_of_a_workload_must_fit_the_context_each_as_it_is(
    made: Ruler, pairs: tuple[tuple[int, int], ...], fits: bool
) -> None:
    """Drawn apart, input and output would come to 7,800 tokens in a quarter of either."""
    asked = workload(*(Row(input_tokens=into, output_tokens=out) for into, out in pairs * 100))
    lengths = lengths_of(asked, (Fixed(1), Fixed(1)))
    mix = of_rows(kinds(spec().prompts), *lengths, totals_of(asked, *lengths))

    def planned() -> object:
        return plan.calls(spec(workload="w.toml"), made, body=body, host="h", target="/", mix=mix, context_tokens=4096,
                          workload=asked)  # fmt: skip

    if fits:
        planned()
    else:
        with pytest.raises(SpecError) as refused:
            planned()
        assert (refused.value.slug, refused.value.params) == ("context_too_short", {"asked": 7800, "context": 4096})


def test_each_call_of_a_workload_is_of_the_scenario_of_its_row(made: Ruler) -> None:
    rows = (
        Row(input_tokens=60, output_tokens=1, scenario="chat"),
        Row(parts=(Part("user", "Why?"),), scenario="ask"),
        Row(input_tokens=60, hash_ids=(1,), scenario="chat"),
        Row(input_tokens=60),
    )
    asked = workload(*rows, block_tokens=16)
    calls = plan.calls(spec(workload="w.toml"), made, body=body, host="h", target="/", workload=asked)
    assert [call.scenario for call in islice(calls, 5)] == ["chat", "ask", "chat", None, "chat"]


def test_the_share_of_the_common_prefix_holds_for_the_rows_of_a_workload(made: Ruler) -> None:
    prompts = spec(workload="w.toml", shared_prefix_tokens=30, shared_prefix_share=0.5)
    asked = workload(Row(input_tokens=90, output_tokens=1))
    calls = plan.calls(prompts, made, body=body, host="h", target="/", workload=asked)
    opening = plan.calls(spec(shared_prefix_tokens=30, input_tokens="90"), made, body=body, host="h", target="/")
    common = next(opening).request.partition(b'"prompt":')[2][:60]
    begun = sum(common in call.request for call in islice(calls, 200))
    assert 70 <= begun <= 130
