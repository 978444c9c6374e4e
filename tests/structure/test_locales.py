"""Both catalogues of words hold the same, in the terms of the glossary, and what the code needs and nothing else."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from nilometer.core.record import Phase, TokenSource
from nilometer.core.spec import Spec
from nilometer.core.summary import GeneratorVerdict
from nilometer.metrics.catalogue import METRICS
from nilometer.text import units
from nilometer.text.i18n import Catalogue

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "nilometer"
EN, ZH = Catalogue("en"), Catalogue("zh")
KEYS = sorted({*EN.keys(), *ZH.keys()})
KINDS = {
    "error",
    "finding",
    "screen",
    "short",
    "evidence",
    "metric",
    "meaning",
    "key",
    "doc",
    "step",
    "cause",
    "remedy",
    "trial",
    "outcome",
}
ERRORS = {"NiloError", "SpecError", "DataError", "TargetError", "EngineError", "ArchiveError", "ConditionError"}

TERMS = [
    ("time to first token", "首 token 时延"),
    ("TTFT", "TTFT|首 token 时延"),
    ("time to first answer", "首个回答时延"),
    ("TTFA", "TTFA|首个回答时延"),
    ("time per output token", "每输出 token 时延"),
    ("TPOT", "TPOT|每输出 token 时延"),
    ("inter-token latency", "token 间隔"),
    ("frame gap", "帧间隔"),
    ("frame gaps", "帧间隔"),
    ("end-to-end latency", "端到端时延"),
    ("throughput", "吞吐"),
    ("goodput", "有效吞吐"),
    ("percentile", "分位数"),
    ("percentiles", "分位数"),
    ("concurrency", "并发"),
    ("closed loop", "闭环"),
    ("closed-loop", "闭环"),
    ("open loop", "开环"),
    ("open-loop", "开环"),
    ("warm-up", "预热"),
    ("steady window", "稳态窗口"),
    ("drain", "收尾"),
    ("load generator", "压测端"),
    ("start lag", "发送滞后"),
    ("refill", "补位时间"),
    ("prefill", "预填充"),
    ("decode", "解码"),
    ("decoding", "解码"),
    ("KV cache", "KV 缓存"),
    ("prefix cache", "前缀缓存"),
    ("prefix cache hit", "前缀缓存命中"),
    ("queue", "排队"),
    ("queueing", "排队"),
    ("slot", "槽位"),
    ("slots", "槽位"),
    ("batch", "批"),
    ("static batching", "静态批处理"),
    ("continuous batching", "连续批处理"),
    ("chunked prefill", "分块预填充"),
    ("preemption", "抢占"),
    ("preemptions", "抢占"),
    ("memory bandwidth", "带宽"),
    ("compute bound", "受算力限制"),
    ("roofline", "屋顶线模型"),
    ("quantisation", "量化"),
    ("precision", "精度"),
    ("speculative decoding", "投机采样"),
    ("acceptance rate", "接受率"),
    ("bottleneck", "瓶颈"),
    ("counter-evidence", "反证"),
    ("expected gain", "预计收益"),
    ("baseline", "基线"),
    ("regression", "退化"),
    ("admissible", "采信"),
    ("marked", "存疑"),
    ("not admissible", "不可采信"),
    ("test conditions", "测试条件"),
    ("archive", "档案"),
    ("performance archive", "性能档案"),
    ("service-level objective", "服务目标"),
    ("SLO", "SLO"),
    ("knee", "拐点"),
    ("length mix", "长度分布"),
    ("noise floor", "噪声底"),
]
"""The glossary: where the English says the one, the Chinese says the other (either, of two parted by `|`)."""

BEHIND = {"cause", "remedy"}
"""Parameters that are the sentence and the next step of the error behind the one that is told."""

BANNED = {
    "百分比": "分位数 or a figure with %",
    "延迟": "时延",
    "首字时延": "首 token 时延",
    "令牌": "token",
    "词元": "token",
    "负载发生器": "压测端",
    "发压": "压测端",
    "分位点": "分位数",
    "热身": "预热",
    "投机解码": "投机采样",
}


def _parameters(template: str) -> dict[str, set[str]]:
    """Name -> forms it is shown in."""
    found: dict[str, set[str]] = {}
    for _, name, form, _ in string.Formatter().parse(template):
        if name is not None:
            found.setdefault(name, set()).add(form or "")
    return found


def _has_term(english: str, term: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(term)}(?![\w-])", _without_code(english), re.IGNORECASE) is not None


def _without_code(text: str) -> str:
    """The words alone: without commands in backticks, parameters, options and slugs."""
    return re.sub(r"`[^`]*`|\{[^}]*\}|--?[a-z][\w-]*|\w+_\w+", " ", text)


@cache
def _trees() -> dict[Path, ast.Module]:
    files = [*SOURCE.rglob("*.py"), *(ROOT / "docs").glob("*.py")]
    return {path: ast.parse(path.read_text("utf-8")) for path in files}


def _calls() -> Iterator[tuple[Path, str, ast.Call]]:
    for path, tree in _trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                yield path, name, node


def _strings(node: ast.AST | None) -> list[str]:
    """The texts an argument can be: itself, or both sides of a choice."""
    if isinstance(node, ast.IfExp):
        return _strings(node.body) + _strings(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _takers() -> dict[str, int]:
    """Functions of ours with a parameter `slug` -> its position in a call."""
    found = {}
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
                if "slug" in names and node.name != "__init__":
                    found[node.name] = names.index("slug")
    return found


def _raised() -> Iterator[tuple[str, str, ast.Call]]:
    """(where, slug, call) of every error made with a slug that can be read from the source."""
    for path, name, call in _calls():
        if name in ERRORS and call.args:
            for slug in _strings(call.args[0]):
                yield f"{path.name}:{call.lineno}", slug, call


@cache
def _with_one_behind() -> frozenset[int]:
    """The calls that make an error raised `from` one that was caught as ours."""
    return frozenset(
        id(node.exc)
        for handler in _handlers()
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise) and isinstance(node.cause, ast.Name) and node.cause.id == handler.name
    )


def _handlers() -> Iterator[ast.ExceptHandler]:
    """The handlers that catch errors of ours by name."""
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.name is not None and node.type is not None:
                caught = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                if caught & ERRORS:
                    yield node


def _slugs_named() -> Iterator[tuple[str, str]]:
    """(where, slug) of every slug handed on: `slug="..."`, or in the place of a parameter of that name."""
    takers = _takers()
    for path, name, call in _calls():
        named = [keyword.value for keyword in call.keywords if keyword.arg == "slug"]
        place = takers.get(name)
        if place is not None and len(call.args) > place:
            named.append(call.args[place])
        for node in named:
            yield from ((f"{path.name}:{call.lineno}", slug) for slug in _strings(node))


@cache
def _texts() -> tuple[set[str], list[re.Pattern[str]]]:
    """Every text in the code, and the pattern of every text with parts filled in."""
    texts: set[str] = set()
    patterns: list[re.Pattern[str]] = []
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [
                    re.escape(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else ".+"
                    for part in node.values
                ]
                if re.match(
                    r"(screen\\\.\w{3,}|(short|evidence|metric|meaning|key|doc|step|cause|remedy|trial|outcome)\\\.)",
                    parts[0],
                ):
                    patterns.append(re.compile("".join(parts)))
    return texts, patterns


def test_both_languages_have_the_same_keys() -> None:
    assert EN.keys() == ZH.keys()
    assert {key.split(".")[0] for key in KEYS} <= KINDS


def test_both_languages_take_the_same_parameters_in_forms_that_exist() -> None:
    told = {key: (_parameters(EN.template(key)), _parameters(ZH.template(key))) for key in KEYS}
    assert [key for key, (one, other) in told.items() if one.keys() != other.keys()] == []
    forms = {(key, form) for key, pair in told.items() for one in pair for shown in one.values() for form in shown}
    known = re.compile(rf"|{'|'.join(units.FORMATS)}|of\|[^|]+\|[^|]+")
    assert [(key, form) for key, form in sorted(forms) if not known.fullmatch(form)] == []


def test_the_words_are_those_of_the_glossary() -> None:
    strayed = [
        f"{key}: {english} is {chinese}"
        for key in KEYS
        for english, chinese in TERMS
        if _has_term(EN.template(key), english) and not re.search(chinese, ZH.template(key))
    ]
    strayed += [f"{key}: {bad}, say {good}" for key in KEYS for bad, good in BANNED.items() if bad in ZH.template(key)]
    assert strayed == []


def test_chinese_is_set_as_chinese() -> None:
    faults = [(key, fault) for key in KEYS for fault in _typesetting(ZH.template(key), EN.template(key))]
    assert faults == []


def _typesetting(chinese: str, english: str) -> Iterator[str]:
    if re.search(r"[\u4e00-\u9fff][,;!?()]|[,;!?()][\u4e00-\u9fff]", _without_code(chinese)):
        yield "half-width mark beside a Chinese character"
    if re.search(r"[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9`%][\u4e00-\u9fff]", chinese):
        yield "no blank between Chinese and other letters"
    words = re.sub(r"tokens?", "", _without_code(english))
    if re.search(r"[a-z]{4}", words) and not re.search(r"[\u4e00-\u9fff]", chinese):
        yield "left in English"


def test_a_sentence_of_an_error_or_finding_leaves_its_end_to_the_screen() -> None:
    keys = [key for key in KEYS if key.startswith(("error.", "finding."))]
    texts = {(words.lang, key): words.template(key) for words in (EN, ZH) for key in keys}
    assert [
        where for where, text in texts.items() if text != text.strip() or text.endswith((".", "。", "；", ";"))
    ] == []
    slugs = {key.rpartition(".")[0] for key in keys}
    assert {f"{slug}.{part}" for slug in slugs for part in ("what", "next")} == set(keys)


def test_every_error_raised_has_its_words_and_gives_them_their_parameters() -> None:
    faults = []
    for where, slug, call in _raised():
        if f"error.{slug}.what" not in EN:
            faults.append(f"{where}: {slug} has no entry")
            continue
        given = {keyword.arg for keyword in call.keywords} | (BEHIND if id(call) in _with_one_behind() else set())
        wanted = {name for part in ("what", "next") for name in _parameters(EN.template(f"error.{slug}.{part}"))}
        if None not in given and not wanted <= given:
            faults.append(f"{where}: {slug} lacks {sorted(wanted - {name for name in given if name})}")
    assert faults == []


def test_no_error_of_ours_is_told_by_its_repr() -> None:
    """`str` of one is for logs: in a sentence it would be `slug(path='...')`."""
    handlers = list(_handlers())
    assert len(handlers) > 5
    assert [
        f"{handler.name} below line {handler.lineno}"
        for handler in handlers
        for node in ast.walk(handler)
        if _as_text(node) == handler.name
    ] == []


def _as_text(node: ast.AST) -> str | None:
    """The name whose text this takes: `str(name)`, `repr(name)`, `{name}` in a text."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "repr", "format") and node.args:
        node = node.args[0]
    elif isinstance(node, ast.FormattedValue):
        node = node.value
    else:
        return None
    return node.id if isinstance(node, ast.Name) else None


def test_every_slug_handed_on_has_its_words() -> None:
    known = {key.split(".")[1] for key in KEYS if key.startswith(("error.", "finding."))}
    checks = {key.split(".")[2] for key in KEYS if key.startswith("screen.doctor.")}
    checks |= {key.split(".")[3] for key in KEYS if key.startswith(("screen.advice.option.", "screen.advice.fit."))}
    unknown = [(where, slug) for where, slug in _slugs_named() if slug not in known | checks]
    assert unknown == []


def test_every_finding_made_with_plain_parameters_gives_its_sentence_what_it_wants() -> None:
    faults = []
    for path, name, call in _calls():
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        params = given.get("params")
        if name != "Finding" or not isinstance(params, ast.Dict):
            continue
        names = {text for node in params.keys for text in _strings(node)}
        for slug in _strings(given.get("slug")):
            if f"finding.{slug}.what" not in EN:
                faults.append(f"{path.name}:{call.lineno}: {slug} has no entry")
                continue
            wanted = {p for part in ("what", "next") for p in _parameters(EN.template(f"finding.{slug}.{part}"))}
            if not wanted <= names | {"run", "evidence"}:
                faults.append(f"{path.name}:{call.lineno}: {slug} lacks {sorted(wanted - names)}")
    assert faults == []


def test_every_error_and_finding_of_the_catalogue_is_made_somewhere() -> None:
    slugs = sorted({key.rpartition(".")[0] for key in KEYS if key.startswith(("error.", "finding."))})
    assert [slug for slug in slugs if slug.partition(".")[2] not in _texts()[0]] == []


def test_every_other_entry_is_said_somewhere() -> None:
    texts, patterns = _texts()
    others = [key for key in KEYS if not key.startswith(("error.", "finding."))]
    told = texts | {f"screen.{text}" for text in texts}  # what takes its time is told by the bare word
    assert [key for key in others if key not in told and not any(p.fullmatch(key) for p in patterns)] == []


def _spec_keys(struct: type[msgspec.Struct] = Spec, prefix: str = "key.") -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        kind: Any = field.type
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _spec_keys(kind, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def test_each_family_of_words_is_complete_and_no_larger() -> None:
    families = {
        "metric": {f"metric.{metric.name}" for metric in METRICS},
        "meaning": {f"meaning.{metric.name}" for metric in METRICS},
        "key": set(_spec_keys()),
        "screen.phase": {f"screen.phase.{phase}" for phase in get_args(Phase)},
        "screen.source": {f"screen.source.{source}" for source in get_args(TokenSource)},
    }
    for family, wanted in families.items():
        assert {key for key in KEYS if key.startswith(f"{family}.")} == wanted
    shown = {f"short.{metric.name}" for metric in METRICS if metric.scope == "latency_ms"}
    assert shown - set(KEYS) == {"short.connect", "short.ttft_from_sent", "short.e2e_from_sent"}
    assert {f"screen.generator.{verdict}" for verdict in get_args(GeneratorVerdict)} <= set(KEYS)
