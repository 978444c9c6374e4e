"""One rule for what is key-like, and what is hidden by its place: in addresses, flags, targets, bodies, headers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from nilometer.core.secrets import (
    in_flags,
    in_header,
    in_target,
    in_tree,
    in_url,
    is_secret_name,
    mask_flags,
    mask_target,
    mask_tree,
    mask_url,
)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "key",
            "api_key",
            "Api-Key",
            "apiKey",
            "apikey2",
            "--api-key",
            "api_keys",
            "x-api-key",
            "subscription-key",
            "user_token",
            "db_passwd",
        ),
        *("token", "ACCESS_TOKEN", "--hf-token", "-hft", "api_tokens", "tokenValue", "secret", "client_secret"),
        *("secret_key_base", "password", "passwd", "pwd", "pass", "passphrase", "ssl_keyfile_password"),
        *("auth", "Authorization", "proxy-authorization", "bearer", "jwt", "cookie", "Set-Cookie", "sig"),
        *("X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "credentials"),
    ],
)
def test_a_name_whose_last_noun_is_a_secret_is_secret_name(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "model", "tokens", "max_tokens", "min_tokens", "max_completion_tokens", "--max-num-batched-tokens"),
        *("stop_token_ids", "eos_token_id", "skip_special_tokens", "return_tokens_as_token_ids", "token_budget"),
        *("--tokenizer", "tokenizer-mode", "--api-key-file", "--ssl-keyfile", "password_file", "credential_type"),
        *(
            "author",
            "keyboard",
            "X-Team",
            "eos_token",
            "prompt_cache_key",
            "seed",
            "temperature",
            "--keep",
            "num_key_value_heads",
            "key_header",
            "--cache-type-k",
            "design",
            "team",
        ),
    ],
)
def test_a_name_of_something_else_is_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h/p", "http://h/p"),
        ("http://u:p@h/p", "http://***@h/p"),
        ("http://u:p@q@h/p", "http://***@h/p"),
        ("http://u@h", "http://***@h"),
        ("http://h/@cf/m", "http://h/@cf/m"),
        ("http://h?mail=a@b", "http://h?mail=a@b"),
        ("http://h/p?key=1&Token=2&x=3", "http://h/p?key=***&Token=***&x=3"),
        ("http://h/p?X-Amz-Signature=1#part", "http://h/p?X-Amz-Signature=***"),
        ("http://h/p?x=1;api_key=s;t&y=2", "http://h/p?x=1;api_key=***&y=2"),
        ("http://h/p?x=1#access_token=s", "http://h/p?x=1#access_token=***"),
        ("http://h/#access_token=s", "http://h/#access_token=***"),
        ("http://h/p?pwd=s&X-Amz-Credential=s", "http://h/p?pwd=***&X-Amz-Credential=***"),
        ("http://h/p?next=http://u:p@g/", "http://h/p?next=http://***@g/"),
        ("http://h/p?flag", "http://h/p?flag"),
        ("postgresql://u:p@h:5432/db?password=x", "postgresql://***@h:5432/db?password=***"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert mask_url(url) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key", "c4n4ry"], ["--api-key", "***"]),
        (["--api-key=c4n4ry", "-np", "2"], ["--api-key=***", "-np", "2"]),
        (["-hft", "c4n4ry"], ["-hft", "***"]),
        (["--hf-token", "c4n4ry", "-c", "8"], ["--hf-token", "***", "-c", "8"]),
        (["--proxy", "http://u:c4n4ry@host/x"], ["--proxy", "http://***@host/x"]),
        (["--max-num-batched-tokens", "2048"], ["--max-num-batched-tokens", "2048"]),
        (["--api-key-file", "/keys"], ["--api-key-file", "/keys"]),
        (["--api-key"], ["--api-key"]),
        (["--api-key", "-c4n4ry", "-np", "2"], ["--api-key", "***", "-np", "2"]),
        (["--api-key", "--metrics"], ["--api-key", "--metrics"]),
        (["--proxy", "http://host/?api_key=c4n4ry"], ["--proxy", "http://host/?api_key=***"]),
        (["--chat-template", "a;key=b"], ["--chat-template", "a;key=b"]),
    ],
)
def test_flags_are_shown_without_their_secrets_and_else_as_they_are(words: list[str], shown: list[str]) -> None:
    assert mask_flags(words) == shown


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("embedded", "embedded"),
        ("llama-server:-np  4", "llama-server:-np  4"),
        ("llama-server:--api-key c4n4ry -np 4", "llama-server:--api-key '***' -np 4"),
        ("llama-server:--proxy=http://u:c4n4ry@h", "llama-server:'--proxy=http://***@h'"),
        ("http://u:c4n4ry@h/v1?api_key=c4n4ry", "http://***@h/v1?api_key=***"),
        ("/opt/server:--api-key 'c4n4ry", "/opt/server:--api-key '***'"),
    ],
)
def test_a_target_is_shown_without_its_secrets(target: str, shown: str) -> None:
    assert mask_target(target) == shown
    assert mask_target(shown) == shown


def test_a_tree_is_hidden_under_key_like_names_however_deep() -> None:
    tree: dict[str, Any] = {
        "api_key": "c4n4ry",
        "pin": {"password": 1234, "auth": {"user": "u", "pass": "c4n4ry"}, "n": 1},
        "tools": [{"headers": {"Authorization": "Bearer c4n4ry"}}],
        "image": "https://u:c4n4ry@h/i.png?sig=c4n4ry",
        "auth": True,
        "token": None,
        "stop": ["***", "key=x"],
        "max_tokens": 8,
    }
    shown = mask_tree(tree)
    assert shown == {
        "api_key": "***",
        "pin": {"password": "***", "auth": "***", "n": 1},
        "tools": [{"headers": {"Authorization": "***"}}],
        "image": "https://***@h/i.png?sig=***",
        "auth": True,
        "token": None,
        "stop": ["***", "key=x"],
        "max_tokens": 8,
    }
    assert mask_tree(shown) == shown
    assert {"c4n4ry", "1234", "u", "u:c4n4ry"} <= set(in_tree(tree))
    assert not {"***", "key=x", "8"} & set(in_tree(tree))


BASIC = b64encode(b"user:p/w").decode()


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ("c4n4ry", {"c4n4ry"}),
        ("two words", {"two words", "words"}),
        ("Token token=c4n4ry", {"token=c4n4ry", "c4n4ry"}),
        ("Bearer c4n4ry", {"c4n4ry"}),
        ("bearer  c4n4ry", {"c4n4ry"}),
        ("Bearer", {"Bearer"}),
        (f"Basic {BASIC}", {BASIC, "user:p/w", "p/w", BASIC.rstrip("=")}),
        ("Basic n0-b64", {"n0-b64"}),
        ('sid=c4n4ry; id="second", n=1', {'sid=c4n4ry; id="second", n=1', 'id="second", n=1', "c4n4ry", "second"}),
    ],
)
def test_the_secrets_of_a_header_are_its_value_without_its_scheme(value: str, secrets: set[str]) -> None:
    assert set(in_header("Authorization", value)) == secrets


def test_a_short_value_of_a_header_is_a_secret_where_its_name_says_so() -> None:
    assert set(in_header("X-Debug", "1")) == set()
    assert set(in_header("X-Env", "staging")) == {"staging"}
    assert set(in_header("X-Api-Key", "1234")) == {"1234"}


def test_the_secrets_of_an_address_are_told_as_they_are_meant_and_as_http_sends_them() -> None:
    found = set(in_url("http://us%40er:p%2Fw@h/x?api%5Fkey=a%2Bb&n=1#token=t"))
    assert found == {"us@er:p/w", "p/w", b64encode(b"us@er:p/w").decode().rstrip("="), "a%2Bb", "a+b", "t"}
    assert {"Pz8+Oj8/Pz4", "Pz8-Oj8_Pz4"} <= set(in_url("http://%3F%3F>:%3F%3F%3F>@h"))
    assert {"sk-1:", "sk-1"} <= set(in_url("http://sk-1@h"))
    assert set(in_url("http://h/x?n=1")) == set()


def test_the_secrets_of_flags_are_told_one_by_one() -> None:
    assert set(in_flags(["--api-key", "one,two", "-np", "2", "--hf-token=three"])) == {"one", "two", "three"}
    assert set(in_target("llama-server:--api-key one")) == {"one"}
    assert "pw" in set(in_target("http://u:pw@h"))
