"""Files that say how an engine is started: a flat YAML, a Modelfile, variables, a unit of systemd, a script.

Only what a launch needs is read. Nesting is refused by line, unless it stands under a key of no weight.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nilometer.core.errors import DataError
from nilometer.plan.launch.command import Launch, Written, gathered, look_up, spoken
from nilometer.plan.launch.flags import NONE, UNCOUNTED, Dialect
from nilometer.plan.launch.flags_others import DIALECTS, PARAMETERS

from .models.opened import open_file

MOST_BYTES = 1 << 20
_KEY = re.compile(r"""(["']?)([A-Za-z][\w.-]*)\1[ \t]*:(?:[ \t]+(.*)|[ \t]*)$""")
_VARIABLE = re.compile(r"(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)")
_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)(?:[ \t]+(.*))?$", re.DOTALL)
_INSTRUCTIONS = frozenset(
    [
        "from",
        "parameter",
        "template",
        "system",
        "adapter",
        "license",
        "message",
        "requires",
        "renderer",
        "parser",
        "draft",
    ]
)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_QUOTES = '"""'

Line = tuple[int, str]


def read_config(path: Path) -> Launch:
    """The launch that a file describes.

    DataError `file_unreadable`, `file_piped`, `file_no_text`, `engine_config_large`, `engine_config_unknown`,
    `engine_config_line`, `engine_config_nested`. SpecErrors of `plan.launch.gathered`, with file and line.
    """
    text = read_text(path)
    lines = list(enumerate(text.splitlines(), 1))
    if _is_modelfile(path, lines):
        return gathered("ollama", _modelfile(path, lines), dialect=PARAMETERS)
    if any(line.strip() == "[Service]" for _, line in lines):
        return _said(_unit(lines), path)
    if _is_variables(lines):
        return _of_variables(path, lines)
    if not any(_KEY.match(line) for _, line in lines):
        return _said(text, path)
    return _yaml_of_engine(path, lines)


def read_text(path: Path) -> str:
    """A file of text, of bounded size. DataErrors as above."""
    if path.is_dir():
        raise DataError("file_unreadable", file=str(path), detail="EISDIR")
    with open_file(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DataError("engine_config_large", file=str(path), most=MOST_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("file_no_text", file=str(path)) from None


def _said(text: str, path: Path) -> Launch:
    """A script, with the file that it names for more."""
    return of_command(text, path.parent)


def of_command(text: str, folder: Path | None = None) -> Launch:
    """A command, and under its flags the file that it names with `--config`, where that is there."""
    said = spoken(text)
    own: Sequence[Written] = ()
    if said.config is not None:
        path = (folder or Path()) / said.config
        if _there(path):
            own = yaml_pairs(path, DIALECTS[said.engine])
    return gathered(said.engine, [*said.variables, *own, *said.flags], version=said.version)


def _there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def yaml_pairs(path: Path, dialect: Dialect) -> Sequence[Written]:
    """The settings of a flat YAML file of one engine. DataErrors as above."""
    lines = list(enumerate(read_text(path).splitlines(), 1))
    return list(_pairs(path, lines, dialect))


def _yaml_of_engine(path: Path, lines: Sequence[Line]) -> Launch:
    """By whose flags its keys are: the engine that knows most of them, and some that sets a field."""
    keys = [found[2] for _, line in lines if (found := _KEY.match(line))]
    engines = [DIALECTS["vllm"], DIALECTS["sglang"]]
    weights = {one.engine: sum(_weight(key, one) for key in keys) for one in engines}
    best = max(engines, key=lambda one: weights[one.engine])
    if not weights[best.engine]:
        shown = ", ".join(keys[:3]) or "-"
        raise DataError("engine_config_unknown", file=str(path), keys=shown[:80], known="vllm, sglang")
    return gathered(best.engine, _pairs(path, lines, best))


def _weight(key: str, dialect: Dialect) -> int:
    """How much a key speaks for an engine: abbreviations do not, a field of a plan does most."""
    flag = dialect.flags.get(_flag(key).replace("_", "-"))
    return 0 if flag is None else 1 if flag.field in {NONE, UNCOUNTED} else 2


def _flag(key: str) -> str:
    return f"--{key}"


def _pairs(path: Path, lines: Sequence[Line], dialect: Dialect) -> Iterator[Written]:
    """Key by key. A list of words under a key is taken as its words, a mapping is refused unless it has no weight."""
    at = 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        bare = line.strip()
        if not bare or bare.startswith("#") or bare in {"---", "..."}:
            continue
        found = _KEY.match(line)
        if found is None:
            raise DataError("engine_config_line", file=str(path), line=number, text=bare[:60])
        block, at = _below(lines, at)
        name, place = _named(found[2], dialect), f"{path}:{number}"
        value = _scalar(found[3] or "")
        if block or value[:1] in {"{", "[", "|", ">", "&", "*", "!"}:
            yield from _nested(path, number, name, place, block or [(number, value)], dialect)
        elif value not in _NULL:
            yield Written(name=name, value=value, place=place)


def _named(key: str, dialect: Dialect) -> str:
    """As the flag is spelt that the engine makes of a key."""
    name = _flag(key)
    dashed = name.replace("_", "-")
    return dashed if dashed in dialect.flags else name


def _below(lines: Sequence[Line], at: int) -> tuple[list[Line], int]:
    """The lines that hang on the key before them, and where the next begins."""
    block: list[Line] = []
    while at < len(lines):
        text = lines[at][1]
        if text.strip() and not text.lstrip().startswith("#"):
            if not text.startswith((" ", "\t", "- ")):
                break
            block.append(lines[at])
        at += 1
    return block, at


def _nested(
    path: Path, number: int, name: str, place: str, block: Sequence[Line], dialect: Dialect
) -> Iterator[Written]:
    flag, _ = look_up(name, dialect)
    if flag is not None and flag.field in {NONE, UNCOUNTED}:
        yield Written(name=name, value=None, place=place)
        return
    at = block[0][0] if block else number
    raise DataError("engine_config_nested", file=str(path), line=at, key=name.removeprefix("--"))


def _scalar(text: str) -> str:
    """A plain or quoted scalar, the comment behind it taken off."""
    text = text.strip()
    if text[:1] in {'"', "'"}:
        end = text.find(text[0], 1)
        if end > 0:
            return text[1:end]
    return re.split(r"(?:^|[ \t])#", text, maxsplit=1)[0].strip()


def _is_modelfile(path: Path, lines: Sequence[Line]) -> bool:
    if "modelfile" in path.name.lower():
        return True
    first = next((line.strip() for _, line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    return re.match(r"(?i)from[ \t]+\S+$", first) is not None


def _modelfile(path: Path, lines: Sequence[Line]) -> Iterator[Written]:
    """FROM and PARAMETER; texts in three quotes are passed over."""
    inside = False
    for number, line in lines:
        if inside or not line.strip() or line.lstrip().startswith("#"):
            inside ^= line.count(_QUOTES) % 2 == 1
            continue
        inside = line.count(_QUOTES) % 2 == 1
        found = _INSTRUCTION.match(line)
        word = found[1].lower() if found else ""
        if found is None or word not in _INSTRUCTIONS:
            raise DataError("engine_config_line", file=str(path), line=number, text=line.strip()[:60])
        yield from _instruction(word, (found[2] or "").strip(), f"{path}:{number}")


def _instruction(word: str, rest: str, place: str) -> Iterator[Written]:
    if word in {"from", "adapter", "draft"} and rest:
        yield Written(name=word.upper(), value=_scalar(rest), place=place)
    elif word == "parameter":
        name, _, value = rest.partition(" ")
        yield Written(name=name, value=_scalar(value), place=place)


def _is_variables(lines: Sequence[Line]) -> bool:
    """Whether there is nothing in it but NAME=VALUE."""
    told = [line.strip() for _, line in lines if line.strip() and not line.lstrip().startswith("#")]
    return bool(told) and all(_VARIABLE.fullmatch(line) for line in told)


def _of_variables(path: Path, lines: Sequence[Line]) -> Launch:
    pairs = [
        Written(name=found[1], value=_scalar(found[2]), place=f"{path}:{number}")
        for number, line in lines
        if (found := _VARIABLE.fullmatch(line.strip()))
    ]
    counts: Mapping[str, int] = {
        name: sum(pair.name in one.env or _begins(pair.name, one) for pair in pairs) for name, one in DIALECTS.items()
    }
    engine = max(counts, key=lambda name: counts[name])
    if not counts[engine]:
        shown = ", ".join(pair.name for pair in pairs[:3])
        raise DataError("engine_config_unknown", file=str(path), keys=shown[:80], known="llama.cpp, ollama, tgi, vllm")
    dialect = DIALECTS[engine]
    return gathered(engine, [pair for pair in pairs if pair.name in dialect.env or _begins(pair.name, dialect)])


def _begins(name: str, dialect: Dialect) -> bool:
    return dialect.prefix is not None and name.startswith(dialect.prefix)


def _unit(lines: Sequence[Line]) -> str:
    """A unit of systemd as the command that it starts."""
    told = "\n".join(line for _, line in lines).replace("\\\n", " ").splitlines()
    pairs = [line.partition("=") for line in told]
    variables = [value for key, _, value in pairs if key.strip() == "Environment"]
    starts = [value.lstrip("-@:+! ") for key, _, value in pairs if key.strip() == "ExecStart" and value.strip()]
    words: list[str] = []
    for value in variables:
        try:
            words += shlex.split(value)
        except ValueError:
            words.append(value)
    return " ".join([*(shlex.quote(word) if "=" not in word else _assignment(word) for word in words), *starts[-1:]])


def _assignment(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={shlex.quote(value)}"
