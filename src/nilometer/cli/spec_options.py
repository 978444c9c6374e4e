"""The options that make a Spec, as one table, and how they go over a TOML file's values: flag > TOML > default."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from nilometer.core.errors import SpecError
from nilometer.core.secrets import SHOWN, in_target, in_tree, in_url
from nilometer.core.spec import RECORDED, Load, Spec, from_toml, from_tree, to_tree
from nilometer.core.toml import parsed

from .values import HEADER, LABEL, LIMITS, PRICE, RAMP, SECONDS, SHARE

Command = TypeVar("Command", bound=Callable[..., Any])

_AT = {
    "model": ("model",),
    "api": ("api",),
    "stream": ("stream",),
    "probe": ("probe",),
    "slo": ("slo",),
    "concurrency": ("load", "concurrency"),
    "rate": ("load", "rate_per_s"),
    "arrivals": ("load", "arrivals"),
    "speed": ("load", "speed"),
    "ramp": ("load", "ramp_s"),
    "warmup": ("load", "warmup_s"),
    "duration": ("load", "duration_s"),
    "requests": ("load", "requests"),
    "window": ("load", "window"),
    "drain": ("load", "drain_s"),
    "max_total_tokens": ("load", "max_total_tokens"),
    "max_error_rate": ("load", "max_error_rate"),
    "workers": ("load", "workers"),
    "input_tokens": ("prompts", "input_tokens"),
    "output_tokens": ("prompts", "output_tokens"),
    "workload": ("prompts", "workload"),
    "shared_prefix": ("prompts", "shared_prefix_tokens"),
    "turns": ("prompts", "turns"),
    "prompt_text": ("prompts", "text"),
    "prompt_seed": ("prompts", "seed"),
    "temperature": ("sampling", "temperature"),
    "top_p": ("sampling", "top_p"),
    "seed": ("sampling", "seed"),
    "api_key_env": ("http", "api_key_env"),
    "proxy": ("http", "proxy"),
    "insecure": ("http", "insecure"),
    "service": ("labels", "service"),
    "service_version": ("labels", "service_version"),
    "model_version": ("labels", "model_version"),
    "quantisation": ("labels", "quantisation"),
}
"""Option -> where its value stands in the Spec."""

API = click.option(
    "--api",
    metavar="NAME",
    help="auto, chat, completions, responses, ollama, tgi, llamacpp, anthropic, gemini, embeddings, rerank, "
    "or a FILE.toml with your own.  [default: auto]",
)
INSECURE = click.option("--insecure/--no-insecure", default=None, help="Accept any TLS certificate.")

GUIDE = {"warmup_s": 60.0, "duration_s": 180.0, "window": "guide"}

_OPTIONS = (
    click.option("--model", help="Model name; asked from the server where it serves one."),
    click.option(
        "-c", "--concurrency", type=click.IntRange(1, 100_000), help="Closed loop: N in flight.  [default: 1]"
    ),
    click.option("--rate", type=click.FloatRange(0, min_open=True), help="Open loop: R requests/s."),
    click.option(
        "--arrivals",
        metavar="KIND",
        help="Open loop: poisson, constant, gamma:CV; a plan instead of --rate: ramp:R1,R2,T, steps:R@T,..., "
        "spike:BASE,PEAK,T.  [default: poisson]",
    ),
    click.option("--ramp", type=RAMP, help="Spread of the opening wave.  [default: auto, one mean E2E]"),
    click.option(
        "--replay", metavar="FILE", help="Open loop: the requests of a workload file when they were recorded."
    ),
    click.option("--speed", type=click.FloatRange(min=0, min_open=True), help="Replay so many times as fast."),
    click.option("--workload", metavar="FILE", help="Ask what a workload file holds (`nilo workload`), in its order."),
    click.option("--prompts", metavar="FILE", help="Ask the texts of a file: a prompt a line, or any data set or log."),
    click.option(
        "--input-tokens",
        metavar="D",
        help="128 | uniform:64,256 | lognormal:MEDIAN,P95 | empirical:FILE.  [default: 512]",
    ),
    click.option("--output-tokens", metavar="D", help="The same for answers.  [default: 128]"),
    click.option("--requests", type=click.IntRange(1), help="Stop after N measured requests instead of a duration."),
    click.option("--warmup", type=SECONDS, help="Load before the measured stretch.  [default: 60s]"),
    click.option("--duration", type=SECONDS, help="Length of the measured stretch.  [default: 180s]"),
    click.option("--window", metavar="auto|A..B", help="Seconds from the end of the warm-up.  [default: auto]"),
    click.option("--procedure", type=click.Choice(["guide"]), help="Warm-up 60 s, measured 180 s, window 60..180."),
    click.option(
        "--stream/--no-stream", default=None, help="Streams, or whole answers without TTFT and TPOT.  [default: stream]"
    ),
    API,
    click.option("--temperature", metavar="T", help='Sampling temperature, or "none" to leave it out.  [default: 0]'),
    click.option("--top-p", type=click.FloatRange(0, 1), help="Nucleus sampling."),
    click.option("--seed", type=int, help="The server's sampling seed."),
    click.option("--shared-prefix", type=click.IntRange(0), help="Tokens that all prompts begin with.  [default: 0]"),
    click.option(
        "--turns",
        metavar="D",
        help="Conversations of so many turns, each with all that was said before: 4 or a distribution.  [default: 1]",
    ),
    click.option("--prompt-text", type=click.Choice(["en", "zh"]), help="Language of the prompts.  [default: en]"),
    click.option("--prompt-seed", type=int, help="Seed of lengths and texts.  [default: 0]"),
    click.option("--extra-body", metavar="JSON|@FILE", help="More keys for every request."),
    click.option("--slo", metavar="BOUNDS", help='Such as "ttft_p95<=500ms,tpot_p95<=50ms".'),
    click.option("--max-error-rate", type=SHARE, help="More errors make the run inadmissible.  [default: 1%]"),
    click.option(
        "--max-total-tokens",
        type=click.IntRange(1),
        help="Stop when prompts and answers have used so many, those of all repeats and levels together.",
    ),
    click.option(
        "--price",
        type=PRICE,
        metavar="P,...",
        help="in=0.15,out=0.60 for a million tokens, hour=2.50,devices=2 for own hardware; currency=CNY.",
    ),
    click.option("--timeout", type=LIMITS, help="[default: connect=10s,first=none,idle=120s,total=600s]"),
    click.option("--drain", type=SECONDS, help="How long requests may take to end afterwards.  [default: 60s]"),
    click.option("--service", help="What the run is filed under."),
    click.option("--service-version", help="Its version."),
    click.option("--model-version", help="The model's version."),
    click.option("--quantisation", help="The model's precision."),
    click.option("--label", "labels", type=LABEL, multiple=True, help="More labels, K=V; may repeat."),
    click.option("--workers", type=click.IntRange(1, 64), help="Load processes.  [default: as the load needs]"),
    click.option(
        "--probe/--no-probe", default=None, help="Small requests first, or nothing but the load.  [default: probe]"
    ),
    click.option(
        "--header", "headers", type=HEADER, multiple=True, help="Header K:V; may repeat; its value is never stored."
    ),
    click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key."),
    click.option("--proxy", metavar="URL", help="HTTP proxy; proxy variables are ignored unless given."),
    INSECURE,
)


def spec_options(command: Command) -> Command:
    """Add all options of a Spec to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def told_otherwise(command: Command, **helps: str | None) -> Command:
    """The command with other help for some of its options, which differ there; None takes one away."""
    options: list[click.Option] = command.__click_params__  # type: ignore[attr-defined]
    for option in [one for one in options if one.name in helps]:
        told = helps[option.name or ""]
        if told is None:
            options.remove(option)
        else:
            option.help = told
    return command


def resolve(target: str, given: dict[str, Any], base: Spec | None = None) -> Spec:
    """The frozen Spec of `target` (an address, or a TOML file) and the options given; `base` is what --like repeats.

    Slug `spec_twice`: a file beside `base`, as each of them says the whole test.
    """
    given = _with_workload(given)
    is_file = target.endswith(".toml")
    if is_file and base is not None:
        raise SpecError("spec_twice", file=target, option="--resume" if given.get("resume") else "--like")
    base = _read(target) if is_file else base
    tree: dict[str, Any] = to_tree(base) if base is not None else {"target": target}
    if target and not is_file:
        tree["target"] = target
    _lay_over(tree, given)
    _take_protocol(tree, anew=given.get("api") is not None)
    load = tree.setdefault("load", {})
    _choose_loop(load, given)
    _refuse_unheeded(load, given)
    spec = from_tree(tree, "options")
    _refuse_masked(spec)
    return spec


def _take_protocol(tree: dict[str, Any], *, anew: bool) -> None:
    """What the file says that `api` names, put beside it; its headers among the others, which are kept apart."""
    api = tree.get("api", "auto")
    if anew:
        tree.pop("protocol", None)
    if not str(api).endswith(".toml") or tree.get("protocol"):
        return
    from nilometer.wire import custom

    protocol = custom.to_tree(custom.from_toml(_text(api), api))
    headers = tree.setdefault("http", {}).setdefault("headers", {})
    for name, value in protocol.pop("headers", {}).items():
        headers.setdefault(name, value)
    tree["protocol"] = protocol


def _with_workload(given: dict[str, Any]) -> dict[str, Any]:
    """--replay is a workload with its own arrivals, --prompts one of texts.

    Slugs `workload_twice`: more than one; `replay_arrivals`: a replay by other arrivals than its own.
    """
    named = [option for option in ("workload", "prompts", "replay") if given.get(option)]
    if len(named) > 1:
        raise SpecError("workload_twice")
    if not named:
        return given
    asked = {**given, "workload": given[named[0]]}
    if named != ["replay"]:
        return asked
    if given.get("arrivals") not in (None, RECORDED):
        raise SpecError("replay_arrivals", arrivals=given["arrivals"])
    return {**asked, "arrivals": RECORDED}


def _refuse_masked(spec: Spec) -> None:
    """What was kept as `***` cannot be sent again: slug `value_masked`. Headers are looked at where they are read."""
    sent = {
        "TARGET": in_target(spec.target),
        "--proxy": in_url(spec.http.proxy or ""),
        "--extra-body": in_tree(spec.sampling.extra_body),
        "--api": in_tree(spec.protocol),
    }
    where = next((option for option, secrets in sent.items() if SHOWN in secrets), None)
    if where is not None:
        raise SpecError("value_masked", where=where)


_LOOPS = {"concurrency": "concurrency", "rate": "rate_per_s", "arrivals": "arrivals"}
"""Flag -> key of what makes a load closed, open, or open by a plan."""


def _choose_loop(load: dict[str, Any], given: dict[str, Any]) -> None:
    """One in flight unless said. A flag decides over a file's other kind of loop; else two kinds are refused."""
    asked = [flag for flag, key in _LOOPS.items() if _names_a_loop(key, load.get(key))]
    if len(asked) > 1:
        by_flag = [flag for flag in asked if given.get(flag) is not None]
        if len(by_flag) != 1:
            raise SpecError("two_loops")
        for flag in set(asked) - set(by_flag):
            load.pop(_LOOPS[flag])
    elif not asked:
        load["concurrency"] = 1


_PLAIN = Load()


def _refuse_unheeded(load: dict[str, Any], given: dict[str, Any]) -> None:
    """What the kind of loop that was chosen has no use for: slugs `arrivals_without_rate`, `speed_without_replay`,
    `ramp_open`. A flag that chooses another loop than a file or a run takes this out of theirs."""
    arrivals, rated = str(load.get("arrivals", _PLAIN.arrivals)), load.get("rate_per_s") is not None
    varies = Load(arrivals=arrivals).varies
    chosen = any(given.get(flag) is not None for flag in _LOOPS)
    for flag, key, unheeded, slug in (
        ("arrivals", "arrivals", not rated and not varies, "arrivals_without_rate"),
        ("speed", "speed", arrivals != RECORDED, "speed_without_replay"),
        ("ramp", "ramp_s", (rated or varies) and load.get("ramp_s"), "ramp_open"),
    ):
        by_flag = given.get(flag) is not None
        if not unheeded or (not by_flag and load.get(key, getattr(_PLAIN, key)) == getattr(_PLAIN, key)):
            continue
        if by_flag or not chosen:
            raise SpecError(slug, value=load[key])
        load.pop(key)


def _names_a_loop(key: str, value: Any) -> bool:
    """Arrivals do only where they are a shape: the others need a rate beside them."""
    return value is not None and (key != "arrivals" or Load(arrivals=str(value)).varies)


def _lay_over(tree: dict[str, Any], given: dict[str, Any]) -> None:
    _take_out(tree.setdefault("load", {}), given)
    if given.get("workload"):
        tree.setdefault("prompts", {}).pop("workload_sha256", None)
    for name, path in _AT.items():
        value = given.get(name)
        if value is None or (name == "ramp" and value == "auto"):
            continue
        _put(tree, path, _temperature(str(value)) if name == "temperature" else value)
    if given.get("procedure") == "guide":
        _refuse_contradiction(given)
        tree.setdefault("load", {}).update(GUIDE)
    if given.get("timeout"):
        tree.setdefault("timeouts", {}).update(given["timeout"])
    if given.get("price"):
        tree.setdefault("price", {}).update(given["price"])
    if given.get("extra_body"):
        _put(tree, ("sampling", "extra_body"), extra_body(given["extra_body"]))
    for key, value in given.get("labels", ()):
        _put(tree, ("labels", "extra", key), value)
    for key, _ in given.get("headers", ()):
        _put(tree, ("http", "headers", key), SHOWN)


def _take_out(load: dict[str, Any], given: dict[str, Any]) -> None:
    """What an option replaces without standing in its place."""
    if given.get("ramp") == "auto":
        load.pop("ramp_s", None)
    if given.get("requests") is None and (given.get("duration") is not None or given.get("procedure")):
        load.pop("requests", None)


def _refuse_contradiction(given: dict[str, Any]) -> None:
    """The guide's procedure fixes what these options ask for too: slug `procedure_contradicted` where they differ."""
    for name in ("warmup", "duration", "window", "requests"):
        value = given.get(name)
        if value is not None and value != GUIDE.get(_AT[name][1]):
            raise SpecError("procedure_contradicted", option=f"--{name}")


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    tree[path[-1]] = value


def _temperature(text: str) -> float | str:
    try:
        return "none" if text == "none" else float(text)
    except ValueError:
        raise SpecError("temperature_invalid", value=text) from None


def extra_body(text: str) -> dict[str, Any]:
    """JSON, or @FILE that holds it; slug `extra_body_invalid`."""
    if text.startswith("@"):
        text = _text(text[1:])
    try:
        body = json.loads(text)
    except ValueError as fault:
        raise SpecError("extra_body_invalid", detail=str(fault)) from None
    if not isinstance(body, dict):
        raise SpecError("extra_body_invalid", detail="not a JSON object")
    return body


def load_said(target: str) -> frozenset[str]:
    """The keys that a TOML file has under [load]; none of what is no such file."""
    load = parsed(_text(target), target).get("load") if target.endswith(".toml") else None
    return frozenset(load if isinstance(load, dict) else ())


def _read(path: str) -> Spec:
    return from_toml(_text(path), path)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise SpecError("file_unreadable", file=path, detail=str(fault)) from None


def headers_given(spec: Spec, given: dict[str, Any], environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The real header values, kept out of the Spec: --header, TOML headers, the API key of --api-key-env."""
    headers = {**spec.http.headers, **dict(given.get("headers", ()))}
    masked = next((name for name, value in headers.items() if value == SHOWN), None)
    if masked is not None:
        raise SpecError("header_masked", header=masked)
    if spec.http.api_key_env:
        key = environment.get(spec.http.api_key_env)
        if key is None:
            raise SpecError("api_key_missing", variable=spec.http.api_key_env)
        header, before = _key_header(spec)
        headers[header] = before + key
    return tuple(headers.items())


def _key_header(spec: Spec) -> tuple[str, str]:
    """The header that the target's API wants its key in, and what stands before the key."""
    from nilometer.net.endpoint import parse
    from nilometer.wire.dialect import BEARER, Key
    from nilometer.wire.dialects import DIALECTS, spoken

    if spec.protocol or spec.api in DIALECTS:
        own = spoken(spec.api, spec.protocol).key
        if own != BEARER:
            return own
    azure = "://" in spec.target and parse(spec.target).is_azure_deployment
    return Key("api-key") if azure else BEARER
