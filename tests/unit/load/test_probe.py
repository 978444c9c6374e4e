from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest
from tests.unit.load.probe_target import MS, Target, courier
from tests.unit.workload import toy

from nilometer.core.errors import NiloError, SpecError, TargetError
from nilometer.core.spec import Prompts, Sampling, Spec
from nilometer.load.probe import ProbeResult, probe, unprobed
from nilometer.load.probe_talk import FEW_TOKENS
from nilometer.net.endpoint import parse
from nilometer.net.fetch import Response
from nilometer.wire.dialects import DIALECTS
from nilometer.workload import corpus, lengths
from nilometer.workload.plan import calls
from nilometer.workload.scenarios import kinds


def spec(**more: Any) -> Spec:
    prompts = Prompts(input_tokens="200", output_tokens="50")
    return msgspec.structs.replace(Spec(target="http://t:1", prompts=prompts), **more)


def probed(target: Target, asked: Spec | None = None, address: str = "http://t:1", **more: Any) -> ProbeResult:
    asked = asked or spec()
    way, _ = courier(target, asked, address)
    return probe(parse(address), asked, {}, courier=way, **more)


def refused(target: Target, asked: Spec | None = None, address: str = "http://t:1") -> NiloError:
    with pytest.raises(NiloError) as raised:
        probed(target, asked, address)
    return raised.value


def slugs(found: ProbeResult) -> list[str]:
    return [finding.slug for finding in found.findings]


# --- a server that takes everything


def test_all_that_a_load_needs_is_found() -> None:
    target = Target()
    found = probed(target)
    assert (found.api, found.path, found.terms.model, found.models) == ("chat", "/v1/chat/completions", "m", ("m",))
    assert found.terms.include_usage
    assert found.terms.length_fields == ("ignore_eos", "min_tokens")
    assert (found.ruler.source, found.ruler.verified, found.template_tokens) == ("server_tokenizer", True, 9)
    assert found.model.id == "m"
    assert found.findings == ()
    assert (found.requests, found.waited_s) == (len(target.log), 0.0)


def test_every_generation_it_asks_for_is_small() -> None:
    target = Target()
    probed(target)
    asked = target.bodies("/completions")
    assert len(asked) < 8
    assert max(body["max_tokens"] for body in asked) == FEW_TOKENS


def test_the_loads_own_requests_come_out_as_asked() -> None:
    target = Target()
    asked = spec(prompts=Prompts(input_tokens="uniform:40,900", output_tokens="uniform:5,30"))
    found = probed(target, asked)
    made = calls(asked, found.ruler, body=found.bodies(asked), host="t:1", target=found.path, limit=30)
    for call in made:
        sent = msgspec.json.decode(call.request.partition(b"\r\n\r\n")[2])
        assert toy.pieces(sent["messages"][0]["content"]) + 9 == call.asked_input
        assert sent["max_tokens"] == sent["min_tokens"] == call.asked_output


@pytest.mark.parametrize("text", ["en", "zh"])
def test_prompts_are_made_of_the_text_that_the_spec_names(text: Literal["en", "zh"]) -> None:
    asked = spec(prompts=Prompts(input_tokens="60", text=text))
    for found in (probed(Target(), asked), unprobed(parse("http://t:1"), asked)):
        assert found.ruler.frame.text == corpus.CLOSINGS[text]


def test_time_is_foretold_from_a_prompt_of_mean_length_and_the_cost_of_a_token() -> None:
    found = probed(Target(prefill_ms=0.5, decode_ms=20.0))
    # sample and short question differ by a few prompt tokens, hence the tolerance
    assert found.output_tokens_per_s == pytest.approx(50.0, rel=0.03)
    assert found.mean_e2e_s == pytest.approx((200 * 0.5 + 50 * 20.0) / 1000, rel=0.03)


def test_it_tells_where_it_is() -> None:
    steps: list[str] = []
    probed(Target(), on_step=steps.append)
    assert steps == ["reach", "ask", "lengths"]


# --- ways to count


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (Target(tokenize="content"), "server_tokenizer"),
        (Target(tokenize="prompt"), "server_tokenizer"),
        (Target(tokenize=None), "usage"),
    ],
)
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_prompts_are_exact_however_they_are_counted(target: Target, source: str, api: str) -> None:
    target = msgspec.structs.replace(target, log=[])
    asked = spec(api=api)
    found = probed(target, asked)
    assert (found.ruler.source, found.ruler.verified) == (source, True)
    made = calls(asked, found.ruler, body=found.bodies(asked), host="t:1", target=found.path, limit=10)
    for call in made:
        sent = msgspec.json.decode(call.request.partition(b"\r\n\r\n")[2])
        prompt = sent["messages"][0]["content"] if api == "chat" else sent["prompt"]
        assert toy.pieces(prompt) + (9 if api == "chat" else 0) == 200


def test_where_only_usage_counts_it_takes_few_requests_and_tells_the_template() -> None:
    found = probed(Target(tokenize=None))
    assert found.requests < 60
    assert found.template_tokens == 9


def test_usage_that_does_not_follow_the_text_is_no_measure() -> None:
    found = probed(Target(tokenize=None, tokenizer=toy.constant))
    assert (found.ruler.source, slugs(found)) == ("estimated", ["input_length_estimated"])


def test_a_server_that_counts_nothing_gets_estimates_and_three_words_about_it() -> None:
    found = probed(Target(tokenize=None, usage=False, stream_usage=False))
    assert (found.ruler.source, found.template_tokens) == ("estimated", None)
    assert slugs(found) == ["usage_missing", "input_length_estimated"]


def test_a_tokenizer_without_usage_leaves_the_template_unknown() -> None:
    found = probed(Target(usage=False, stream_usage=False))
    assert (found.ruler.source, found.ruler.verified) == ("server_tokenizer", None)
    assert slugs(found) == ["usage_missing", "template_tokens_unknown"]


class Moody:
    """One token a word; of long prompts a tenth too many and too few by turns."""

    def __init__(self) -> None:
        self.long = 0

    def __call__(self, prompt: str) -> int:
        tokens = toy.words(prompt)
        if tokens < 1000:
            return tokens
        self.long += 1
        return round(tokens * (1.1 if self.long % 2 else 0.9))


def test_lengths_that_stay_wrong_are_told() -> None:
    found = probed(Target(tokenizer=Moody()), spec(prompts=Prompts(input_tokens="uniform:100,3000")))
    assert slugs(found) == ["input_length_inexact"]
    share = found.findings[0].params["share"]
    assert isinstance(share, float)
    assert share == pytest.approx(0.1, abs=0.01)
    assert found.ruler.verified is False


def test_lengths_that_can_be_set_right_are_and_not_told() -> None:
    """The parts are counted beside a template that is missing from whole prompts of some length: nine too few."""
    found = probed(Target(tokenizer=lambda p: toy.words(p) + (9 if toy.words(p) >= 150 else 0)))
    assert slugs(found) == []
    assert (found.ruler.shift, found.ruler.verified) == (9, True)


# --- terms


def test_stream_options_are_dropped_where_they_are_refused() -> None:
    found = probed(Target(refuses=("stream_options",)))
    assert not found.terms.include_usage
    assert found.terms.length_fields == ("ignore_eos", "min_tokens")
    assert slugs(found) == ["stream_options_refused", "usage_missing"]


def test_only_the_length_fields_that_are_taken_are_kept() -> None:
    found = probed(Target(refuses=("min_tokens",), stops_after=3))
    assert (found.terms.include_usage, found.terms.length_fields) == (True, ("ignore_eos",))
    assert slugs(found) == ["length_fields_refused"]
    assert found.findings[0].params == {"fields": "min_tokens"}


def test_a_strict_server_gets_none_of_them_and_the_early_end_is_told() -> None:
    found = probed(Target(refuses=("ignore_eos", "min_tokens"), stops_after=3))
    assert found.terms.length_fields == ()
    assert slugs(found) == ["length_fields_refused", "output_length_not_enforced"]
    assert found.findings[1].params == {"asked": 16, "got": 3}


def test_a_field_that_is_taken_but_not_obeyed_is_told() -> None:
    found = probed(Target(stops_after=3, honours=()))
    assert slugs(found) == ["output_length_not_enforced"]


def test_a_spec_that_leaves_the_end_to_the_model_is_not_told_that_it_ends() -> None:
    asked = spec(prompts=Prompts(input_tokens="200", output_tokens="50", ignore_eos=False))
    found = probed(Target(stops_after=3), asked)
    assert (found.terms.length_fields, slugs(found)) == ((), [])


def test_a_server_that_wants_the_newer_name_of_the_limit_gets_it() -> None:
    target = Target(refuses=("max_tokens",), wants=("max_completion_tokens",))
    found = probed(target)
    assert found.terms.limit_field == "max_completion_tokens"
    assert slugs(found) == []


def test_a_stream_that_comes_whole_is_told() -> None:
    assert slugs(probed(Target(streams=False))) == ["stream_ignored"]


def test_whole_answers_are_asked_where_the_spec_wants_them() -> None:
    target = Target()
    found = probed(target, spec(stream=False))
    assert slugs(found) == []
    assert not any(body["stream"] for body in target.bodies("/completions"))


# --- address, API, model


def test_completions_are_taken_where_there_is_no_chat() -> None:
    found = probed(Target(apis=("/completions",)))
    assert (found.api, found.path, found.template_tokens, slugs(found)) == ("completions", "/v1/completions", 0, [])


def test_completions_are_taken_where_chat_is_refused_and_that_is_told() -> None:
    no_template = Target().refusal("default chat template is no longer allowed, so you must provide a chat template")
    found = probed(Target(pages={"/v1/chat/completions": no_template}))
    assert (found.api, slugs(found)) == ("completions", ["api_refused"])


def test_an_asked_api_is_not_changed() -> None:
    fault = refused(Target(apis=("/completions",)), spec(api="chat"))
    assert (fault.slug, fault.params) == ("path_not_found", {"url": "http://t:1/v1/chat/completions"})


@pytest.mark.parametrize("models", [[{"id": "m"}], None])
def test_an_api_beside_v1_is_found(models: list[dict[str, Any]] | None) -> None:
    found = probed(Target(prefix="/api", models=models), spec(model="m"), "http://t:1/api")
    assert found.path == "/api/chat/completions"


def test_an_api_at_the_servers_own_v1_is_told() -> None:
    fault = refused(Target(), address="http://t:1/api/v1")
    assert fault.slug == "path_elsewhere"
    assert fault.params == {"url": "http://t:1/api/v1/chat/completions", "answers": "http://t:1/v1"}


def test_no_api_anywhere_is_told() -> None:
    fault = refused(Target(models=None, apis=()))
    assert isinstance(fault, TargetError)
    assert (fault.slug, fault.params) == ("path_not_found", {"url": "http://t:1/v1/chat/completions"})


def test_a_model_that_only_the_server_knows_to_be_wrong_is_refused() -> None:
    fault = refused(Target(models=None), spec(model="gpt"))
    assert isinstance(fault, SpecError)
    assert (fault.slug, fault.params) == ("model_unknown", {"model": "gpt", "served": None})


def test_a_server_that_wants_a_model_named_and_lists_none_is_understood() -> None:
    page = Target().refusal("you must provide a model parameter")
    fault = refused(Target(models=None, pages={"/v1/chat/completions": page}))
    assert (fault.slug, fault.params) == ("model_needed", {"served": None})


def test_a_web_page_in_place_of_an_answer_is_no_model_server() -> None:
    html = Response(200, {"content-type": "text/html"}, b"<html>Sign in</html>", MS)
    fault = refused(Target(models=None, pages={"/v1/chat/completions": html}))
    assert fault.slug == "not_a_model_server"


def test_what_the_server_says_against_a_request_is_passed_on() -> None:
    page = Target().refusal("temperature is not supported")
    fault = refused(Target(pages={"/v1/chat/completions": page}), spec(api="chat"))
    assert isinstance(fault, TargetError)
    assert fault.slug == "request_refused"
    assert fault.params == {
        "url": "http://t:1/v1/chat/completions",
        "status": 400,
        "detail": "temperature is not supported",
    }


def test_a_server_that_fails_is_told_apart_from_one_that_refuses() -> None:
    fault = refused(Target(pages={"/v1/chat/completions": Response(500, {}, b"boom", MS)}))
    assert (fault.slug, fault.params["status"], fault.params["detail"]) == ("request_failed", 500, "boom")


def test_a_target_that_was_busy_at_first_is_measured_and_the_wait_told() -> None:
    found = probed(Target(first=[Response(503, {}, b"", MS), Response(503, {}, b"", MS)]))
    assert slugs(found) == ["target_was_busy"]
    assert found.findings[0].params == {"seconds": 1.0}
    assert found.waited_s == 1.0


# --- what cannot be asked


def test_an_unknown_api_is_refused_before_anything_is_sent() -> None:
    target = Target()
    fault = refused(target, spec(api="smoke"))
    assert (fault.slug, fault.params) == (
        "api_unknown",
        {"api": "smoke", "known": ", ".join(["auto", *DIALECTS, "FILE.toml"])},
    )
    assert target.log == []


def test_lengths_that_mean_nothing_are_refused_before_anything_is_sent() -> None:
    target = Target()
    assert refused(target, spec(prompts=Prompts(input_tokens="lots"))).slug == "lengths_unknown"
    assert target.log == []


def test_a_prompt_shorter_than_the_template_is_refused() -> None:
    fault = refused(Target(template=30), spec(prompts=Prompts(input_tokens="16")))
    assert (fault.slug, fault.params) == ("input_too_short", {"asked": 16, "least": 31})


def test_more_than_the_model_holds_is_refused_before_it_is_tried() -> None:
    target = Target(models=[{"id": "m", "owned_by": "vllm", "max_model_len": 240}])
    fault = refused(target)
    assert (fault.slug, fault.params) == ("context_too_short", {"asked": 250, "context": 240})
    assert max(toy.pieces(body["messages"][0]["content"]) for body in target.bodies("/chat/completions")) < 60


def test_empirical_lengths_are_handed_in() -> None:
    asked = spec(prompts=Prompts(input_tokens="empirical:f", output_tokens="empirical:g"))
    seen = lengths.parse("empirical:f", values=[100, 300])
    mix = kinds(asked.prompts, lambda text: seen if text.startswith("empirical") else lengths.parse(text))
    found = probed(Target(decode_ms=10.0, prefill_ms=0.0), asked, mix=mix)
    assert found.mean_e2e_s == pytest.approx(2.0, rel=0.01)


# --- without a probe


def test_without_a_probe_the_specs_words_stand_and_lengths_are_estimates() -> None:
    found = unprobed(parse("http://t:1/v1"), spec(model="m"))
    assert (found.api, found.path, found.terms.model, found.requests) == ("chat", "/v1/chat/completions", "m", 0)
    assert found.ruler.source == "estimated"
    assert (found.mean_e2e_s, found.context_tokens, found.template_tokens) == (None, None, None)
    assert slugs(found) == ["input_length_estimated"]


def test_without_a_probe_a_grammar_is_respected_all_the_same() -> None:
    asked = spec(sampling=Sampling(extra_body={"grammar": "root ::= x"}))
    assert unprobed(parse("http://t:1"), asked).terms.length_fields == ()


AZURE = "https://h.openai.azure.com/openai/deployments/d"


@pytest.mark.parametrize(
    ("address", "api", "fields"),
    [
        ("http://t:1", "chat", ("ignore_eos", "min_tokens")),
        ("http://t:1", "completions", ("ignore_eos", "min_tokens")),
        ("http://t:1", "llamacpp", ("ignore_eos",)),
        ("http://t:1", "responses", ()),
        ("http://t:1", "anthropic", ()),
        ("http://t:1", "gemini", ()),
        ("http://t:1", "ollama", ()),
        ("http://t:1", "tgi", ()),
        (AZURE, "chat", ()),
        ("https://api.openai.com/v1", "chat", ()),
    ],
)
def test_without_a_probe_only_what_a_server_is_known_to_take_is_sent(
    address: str, api: str, fields: tuple[str, ...]
) -> None:
    found = unprobed(parse(address), spec(model="m", api=api))
    assert found.terms.length_fields == fields
    assert ("output_length_unheld" in slugs(found)) is not bool(fields)


@pytest.mark.parametrize(
    "told",
    [
        {"api": "embeddings"},
        {"api": "anthropic", "prompts": Prompts(ignore_eos=False)},
        {"api": "anthropic", "sampling": Sampling(extra_body={"ignore_eos": True})},
        {"api": "x.toml", "protocol": {"path": "/p", "body": {"q": "{prompt}"}, "whole": {"text": "t"}}},
    ],
)
def test_a_length_that_is_not_wanted_or_held_otherwise_is_not_told(told: dict[str, Any]) -> None:
    assert slugs(unprobed(parse("http://t:1"), spec(**told))) == ["input_length_estimated"]
