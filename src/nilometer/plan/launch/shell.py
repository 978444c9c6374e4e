"""Finds the engine in what a person would type into a shell: its words, its variables, the release of its image.

Nothing is expanded or run: a `$NAME` stays as it stands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from nilometer.core.errors import SpecError
from nilometer.core.secrets import mask_flags

from .flags_others import DIALECTS

MOST_CHARS = 1 << 16
_SHOWN_CHARS = 80
_ENDS = frozenset("\n;&|()")
_ASSIGNMENT = re.compile(r"(?:\$env:)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CONTINUED = re.compile(r"[ \t]*[\\`^][ \t]*\r?\n")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_RUNNERS = frozenset({"docker", "podman", "nerdctl"})
_MODULES: Mapping[str, str] = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "sglang.launch_server": "sglang",
    "sglang_router.launch_server": "sglang",
}
_PROGRAMS: Mapping[str, str] = {"llama-server": "llama.cpp", "text-generation-launcher": "tgi"}
_COMMANDS: Mapping[tuple[str, str], str] = {
    ("vllm", "serve"): "vllm",
    ("sglang", "serve"): "sglang",
    ("ollama", "serve"): "ollama",
    ("ollama", "start"): "ollama",
    ("ollama", "run"): "ollama",
}
_IMAGES: tuple[tuple[str, str], ...] = (
    ("vllm-openai", "vllm"),
    ("/vllm", "vllm"),
    ("sglang", "sglang"),
    ("text-generation-inference", "tgi"),
    ("llama.cpp", "llama.cpp"),
    ("ollama/ollama", "ollama"),
)
"""What the name of an image holds -> the engine that it starts by itself."""


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's command, taken out of all that stood around it."""

    engine: str
    words: tuple[str, ...]
    """What follows the program's name."""
    env: Mapping[str, str]
    version: str | None = None
    """By the tag of its image."""


def find(text: str) -> Typed:
    """The first command of a known engine. SpecError `launch_unreadable`, `launch_engine_unknown`."""
    if len(text) > MOST_CHARS:
        raise SpecError("launch_unreadable", detail=f"{len(text)} > {MOST_CHARS}")
    found = _find(text, {}, 2)
    if found is None:
        shown = " ".join(mask_flags(text.split()))[:_SHOWN_CHARS]
        raise SpecError("launch_engine_unknown", command=shown, known=", ".join(DIALECTS))
    return found


def _find(text: str, env: dict[str, str], depth: int) -> Typed | None:
    """Variables that are set on the way count for all that comes after."""
    for words in commands(text):
        own, rest = _assigned(words, env)
        if not rest:
            env.update(own)
            continue
        found = _engine(rest, {**env, **own}, depth)
        if found is not None:
            return found
    return None


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a text, redirections left out. SpecError `launch_unreadable`."""
    text = _CONTINUED.sub(" ", text)
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    lexer = shlex.shlex(text, posix=True, punctuation_chars="\n;&|()<>")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    words: list[str] = []
    skip = False
    try:
        for word in lexer:
            if word and set(word) <= _ENDS:
                yield words
                words, skip = [], False
            elif word and set(word) <= set("<>&|"):
                skip = True
                if words and words[-1].isdigit():
                    words.pop()
            elif skip:
                skip = False
            else:
                words.append(word)
    except ValueError as fault:
        raise SpecError("launch_unreadable", detail=str(fault)) from None
    yield words


def _assigned(words: Sequence[str], env: Mapping[str, str]) -> tuple[dict[str, str], Sequence[str]]:
    """Variables set before a command, and the command."""
    del env
    own: dict[str, str] = {}
    rest = list(words)
    while rest:
        found = _ASSIGNMENT.fullmatch(rest[0])
        if found:
            own[found[1]] = found[2]
        elif rest[0] not in {"export", "env", "set", "setx", "sudo", "exec", "nohup", "time", "command", "$"}:
            break
        rest.pop(0)
    return own, rest


def _engine(words: Sequence[str], env: dict[str, str], depth: int) -> Typed | None:
    name = _name(words[0])
    if name in _SHELLS and depth:
        script = next((word for before, word in pairwise(words) if _is_c(before)), None)
        return None if script is None else _find(script, env, depth - 1)
    if name in _RUNNERS and "run" in words[1:3]:
        return _container(words[words.index("run") + 1 :], env, depth)
    return _program(words, env)


def _is_c(word: str) -> bool:
    return re.fullmatch(r"-[a-z]*c", word) is not None


def _program(words: Sequence[str], env: Mapping[str, str], version: str | None = None) -> Typed | None:
    """Whatever stands before the program - a launcher, `uv run`, `numactl` - is passed over."""
    for at, word in enumerate(words):
        name, following = _name(word), words[at + 1] if at + 1 < len(words) else ""
        engine = _COMMANDS.get((name, following))
        taken = 2
        if engine is None and word == "-m":
            engine = _MODULES.get(following)
        if engine is None:
            engine = _PROGRAMS.get(name) or (_MODULES.get(_dotted(word)) if word.endswith(".py") else None)
            taken = 1
        if engine is not None:
            rest = list(words[at + taken :])
            if following == "run" and engine == "ollama" and rest and not rest[0].startswith("-"):
                rest = ["--model", *rest[:1]]
            return Typed(engine=engine, words=tuple(rest), env=env, version=version)
    return None


def _dotted(path: str) -> str:
    """`.../vllm/entrypoints/openai/api_server.py` as a module."""
    parts = path.removesuffix(".py").split("/")
    start = next((at for at, part in enumerate(parts) if part in {"vllm", "sglang"}), 0)
    return ".".join(parts[start:])


def _name(word: str) -> str:
    """Of a program, without its folder."""
    return re.split(r"[\\/]", word)[-1].lower().removesuffix(".exe")


def _container(words: Sequence[str], env: dict[str, str], depth: int) -> Typed | None:
    """`[OPTION...] IMAGE [ARG...]`: what is set by -e counts; the image's own program, or one that is named."""
    env = dict(env)
    for at, word in enumerate(words):
        _variable(words, at, env)
        engine = None if word.startswith("-") or _is_path(words, at) else _of_image(word)
        if engine is None:
            continue
        version, rest = _tag(word), words[at + 1 :]
        if rest and _name(rest[0]) in _SHELLS:
            return _engine(rest, env, depth)
        named = _program(rest, env, version)
        return named or Typed(engine=engine, words=tuple(rest), env=env, version=version)
    return None


def _variable(words: Sequence[str], at: int, env: dict[str, str]) -> None:
    word = words[at]
    pair = word.partition("=")[2] if word.startswith("--env=") else ""
    if word in {"-e", "--env"} and at + 1 < len(words):
        pair = words[at + 1]
    found = _ASSIGNMENT.fullmatch(pair)
    if found:
        env[found[1]] = found[2]


def _is_path(words: Sequence[str], at: int) -> bool:
    """Whether the word belongs to an option of the container: a mount, a variable, a name."""
    taken = {"-v", "--volume", "-e", "--env", "--name", "--mount", "--network", "-w", "--entrypoint", "-u", "-l"}
    return words[at].startswith(("/", ".", "~", "$")) or (at > 0 and words[at - 1] in taken)


def _of_image(word: str) -> str | None:
    name = word.lower().partition("@")[0]
    bare = re.sub(r":[^:/]*$", "", name)
    if "/" not in bare:
        return None
    return next((engine for part, engine in _IMAGES if part in f"/{bare}"), None)


def _tag(image: str) -> str | None:
    """The release in an image's tag: v0.8.5, 3.3.5-rocm, server-cuda-b4719."""
    tag = re.search(r":([^:/@]+)(?:@.*)?$", image)
    found = tag and (re.search(r"(?:^|-)(b\d{3,6})(?:-|$)", tag[1]) or re.match(r"v?(\d+\.\d+(?:\.\d+)*)", tag[1]))
    return found[1] if found else None
