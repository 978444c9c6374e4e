"""What is a secret by its name."""

from __future__ import annotations

import pytest

from nilometer.core.secrets import hide_named, is_secret_name, named_in


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "api-key", "X-Api-Key", "apikey", "--api-key", "access_token", "hf_token", "--hf-token", "-hft",
        "token", "key", "Authorization", "Proxy-Authorization", "Cookie", "password", "db_passwd", "client_secret",
        "credentials",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens", "--max-tokens", "eos_token", "stop_token_ids", "skip_special_tokens", "prompt_cache_key", "model",
        "--api-key-file", "author", "keyboard", "X-Team", "tokenizer",
    ],
)  # fmt: skip
def test_names_of_none(name: str) -> None:
    assert not is_secret_name(name)


def test_a_tree_is_hidden_by_its_names_and_only_texts() -> None:
    tree = {"api_key": "c4n4ry", "n": {"token": 5, "auth": "c4n4ry"}, "list": [{"password": "c4n4ry"}], "stop": ["x"]}
    assert hide_named(tree) == {
        "api_key": "***", "n": {"token": 5, "auth": "***"}, "list": [{"password": "***"}], "stop": ["x"],
    }  # fmt: skip
    assert sorted(named_in(tree)) == ["c4n4ry"] * 3
