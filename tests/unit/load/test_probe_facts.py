from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.load.probe_target import Target, courier

from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.errors import SpecError, TargetError
from nilometer.core.spec import Spec
from nilometer.load.probe_facts import Model, Served, choose, facts, served, served_by, served_natively
from nilometer.net.fetch import Response

SPEC = Spec(target="http://t:1")


def rows(*ids: str) -> Served:
    return Served(models=tuple(Model(id=name) for name in ids), below_v1=True)


def read(target: Target, model: str | None = "m") -> tuple[EngineFacts, ModelFacts]:
    way, _ = courier(target, SPEC)
    return facts(way, served(way), model)


def page(value: object) -> Response:
    return Response(200, {}, msgspec.json.encode(value), 1)


def test_the_list_is_found_below_v1() -> None:
    way, _ = courier(Target(headers={"server": "toy/1"}), SPEC)
    found = served(way)
    assert (found.names, found.below_v1, found.server_header) == ("m", True, "toy/1")


def test_the_list_is_found_beside_v1() -> None:
    way, _ = courier(Target(prefix="/api"), SPEC, "http://t:1/api")
    found = served(way)
    assert (found.names, found.below_v1) == ("m", False)


def test_a_name_too_long_to_go_with_every_request_is_not_offered_and_long_names_are_not_told_whole() -> None:
    way, _ = courier(Target(models=[{"id": "x" * 1_001}, {"id": "y" * 1_000}]), SPEC)
    assert choose(None, served(way)) == "y" * 1_000
    assert len(rows(*["z" * 1_000] * 9).names) == 2_000


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_server_need_not_have_a_list(status: int) -> None:
    target = Target(models=None, pages={"/v1/models": Response(status, {}, b"no", 1)})
    way, _ = courier(target, SPEC)
    assert served(way) == Served()


def test_a_web_page_in_place_of_the_list_is_no_model_server() -> None:
    html = Response(200, {"content-type": "text/html"}, b"\n<!DOCTYPE html><title>Log in</title>", 1)
    way, _ = courier(Target(pages={"/v1/models": html}), SPEC)
    with pytest.raises(TargetError) as refused:
        served(way)
    assert refused.value.slug == "not_a_model_server"
    assert "Log in" in str(refused.value.params["detail"])


def test_the_only_model_is_chosen() -> None:
    assert choose(None, rows("m")) == "m"


def test_an_asked_model_that_is_served_is_chosen() -> None:
    assert choose("b", rows("a", "b")) == "b"


def test_an_alias_and_a_pattern_name_a_model_too() -> None:
    there = Served(models=(Model(id="long-name", aliases=["short"]), Model(id="openai/*")), below_v1=True)
    assert choose("short", there) == "short"
    assert choose("openai/gpt", there) == "openai/gpt"


def test_a_model_that_is_not_served_is_refused_with_those_that_are() -> None:
    with pytest.raises(SpecError) as refused:
        choose("llama3", rows("a", "b"))
    assert (refused.value.slug, refused.value.params) == ("model_unknown", {"model": "llama3", "served": "a, b"})


def test_of_several_models_one_must_be_named() -> None:
    with pytest.raises(SpecError) as refused:
        choose(None, rows("a", "b"))
    assert (refused.value.slug, refused.value.params) == ("model_needed", {"served": "a, b"})


def test_a_long_list_is_cut() -> None:
    with pytest.raises(SpecError) as refused:
        choose(None, rows(*[f"m{i}" for i in range(300)]))
    assert str(refused.value.params["served"]).endswith("m18, m19, ...")


@pytest.mark.parametrize("asked", [None, "any"])
def test_without_a_list_the_users_word_stands(asked: str | None) -> None:
    assert choose(asked, Served()) == asked


def llama(**more: Any) -> dict[str, Any]:
    return {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 512, "n_params": 134_515_008, "ftype": "Q4_0"}, **more}


def test_llama_cpp_tells_build_slots_context_and_file() -> None:
    props = {
        "default_generation_settings": {"n_ctx": 1024, "params": {"seed": 1}},
        "total_slots": 4,
        "model_path": "/models/secret dir/smol.Q4_0.gguf",
        "build_info": "b10434-7e4c0a9",
        "chat_template": "{{x}}",
    }
    engine, model = read(Target(models=[llama()], headers={"server": "llama.cpp"}, pages={"/props": page(props)}))
    assert engine == EngineFacts(
        name="llama.cpp", build="b10434-7e4c0a9", slots=4, context_tokens=1024, server_header="llama.cpp"
    )
    assert model == ModelFacts(id="m", file="smol.Q4_0.gguf", precision="Q4_0", parameters=134_515_008)


@pytest.mark.parametrize("props", [Response(404, {}, b"", 1), page([1]), Response(200, {}, b"\xff", 1)])
def test_llama_cpp_without_readable_props_keeps_what_its_list_tells(props: Response) -> None:
    engine, model = read(Target(models=[llama()], pages={"/props": props}))
    assert (engine.name, engine.context_tokens, engine.slots) == ("llama.cpp", 512, None)
    assert model.precision == "Q4_0"


def test_vllm_tells_its_version_and_the_models_length() -> None:
    row = {"id": "m", "owned_by": "vllm", "max_model_len": 4096, "permission": [{"id": "p"}]}
    engine, _ = read(Target(models=[row], pages={"/version": page({"version": "0.11.0"})}))
    assert engine == EngineFacts(name="vllm", version="0.11.0", context_tokens=4096)


def test_an_unknown_server_is_not_asked_for_what_others_have() -> None:
    target = Target()
    engine, model = read(target)
    assert (engine, model) == (EngineFacts(), ModelFacts(id="m"))
    assert target.paths == ["/v1/models"]


@pytest.mark.parametrize(
    ("path", "told", "api", "engine", "names"),
    [
        ("/api/tags", {"models": [{"name": "a:latest"}, {"name": "b:7b"}]}, "ollama", "ollama", "a:latest, b:7b"),
        ("/info", {"model_id": "org/m", "max_total_tokens": 4096, "version": "3"}, "tgi", "tgi", "org/m"),
        ("/props", {"default_generation_settings": {"n_ctx": 512}}, "llamacpp", "llama.cpp", ""),
    ],
)
def test_a_server_with_an_api_of_its_own_is_known_by_its_page(
    path: str, told: object, api: str, engine: str, names: str
) -> None:
    way, _ = courier(Target(models=None, apis=(), pages={path: page(told)}), SPEC)
    found = served_natively(way)
    assert found is not None
    assert (found.api, found.engine, found.names) == (api, engine, names)


@pytest.mark.parametrize("path", ["/api/tags", "/info", "/props"])
@pytest.mark.parametrize("told", [{}, [], "page", {"models": 3}, {"model_id": None}])
def test_another_page_at_that_place_tells_nothing(path: str, told: object) -> None:
    way, _ = courier(Target(models=None, apis=(), pages={path: page(told)}), SPEC)
    assert served_natively(way) is None


def test_the_latest_of_a_model_needs_no_tag() -> None:
    way, _ = courier(Target(pages={"/api/tags": page({"models": [{"name": "a:latest"}, {"name": "b:7b"}]})}), SPEC)
    there = served_by(way, "ollama", False)
    assert (choose("a", there), choose("b:7b", there)) == ("a", "b:7b")
    with pytest.raises(SpecError):
        choose("b", there)


@pytest.mark.parametrize(
    ("api", "protocol", "asked"),
    [
        ("auto", False, ["/v1/models"]),
        ("anthropic", False, ["/v1/models"]),
        ("ollama", False, ["/api/tags"]),
        ("tgi", False, ["/info"]),
        ("gemini", False, []),
        ("reed.toml", True, []),
    ],
)
def test_what_is_served_is_asked_where_the_api_keeps_it(api: str, protocol: bool, asked: list[str]) -> None:
    target = Target()
    way, _ = courier(target, SPEC)
    served_by(way, api, protocol)
    assert target.paths == asked
