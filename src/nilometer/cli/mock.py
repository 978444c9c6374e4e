"""`nilo mock`: a server with scripted timing and faults that logs the truth, so that any load script can be tested."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nilometer import __version__
from nilometer.core.errors import SpecError

from .session import Session, shared_options
from .values import SHARE, Seconds, Unfit

if TYPE_CHECKING:
    from nilometer.engines.mock_service import Service

FAULT_NAMES = "http_400 http_429 http_500 http_503 drop mute cut stall stream_error html200 garbage noise drip flood"
_TIMES = {
    "ttft": "ttft_ms",
    "gap": "gap_ms",
    "gap_per_stream": "gap_ms_per_stream",
    "prefill": "prefill_ms_per_token",
    "role_lead": "role_lead_ms",
}
"""Options in seconds -> the script's fields in ms."""
_PACING = (*_TIMES, "noise", "slots", "aligned", "tokens_per_frame", "late_headers", "faults", "null")
"""Options that say when an answer comes: with a service its engine says it."""


class Span(click.ParamType[tuple[int, int]]):
    """A count or a span of counts: 30 or 30..90."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", str(value).strip())
        if found is None:
            raise Unfit(str(value), "30, 30..90", param, ctx)
        return int(found[1]), int(found[2] or found[1])


TIME = Seconds()


@click.command()
@click.option("--port", default=0, show_default="a free one", type=click.IntRange(0, 65535), help="Port on 127.0.0.1.")
@click.option(
    "--model", "models", multiple=True, default=("mock",), show_default=True, help="A model it serves; may repeat."
)
@click.option("--any-model", is_flag=True, help="Answer for any model name instead of refusing unknown ones.")
@click.option(
    "--service",
    "service_name",
    metavar="NAME|FILE",
    help="Play this service: a batching engine with a fault of its own, ready under a name, or described in a .toml"
    " file. It also serves GET /metrics.",
)
@click.option("--list-services", is_flag=True, help="The names of those that are ready; serve nothing.")
@click.option("--ttft", type=TIME, default="200ms", show_default=True, help="Request read to first token.")
@click.option("--gap", type=TIME, default="20ms", show_default=True, help="From one token to the next.")
@click.option("--gap-per-stream", type=TIME, default="0ms", help="Added to the gap for each other request in service.")
@click.option("--prefill", type=TIME, default="0ms", help="Added to TTFT per input token.")
@click.option("--noise", type=SHARE, default="0%", help="Each request is off the script by a factor of its own (sd).")
@click.option("--slots", default=0, type=click.IntRange(0), help="Requests served at once, the rest queues; 0 = all.")
@click.option("--aligned", is_flag=True, help="Write the tokens of all streams at the same instants.")
@click.option(
    "--tokens", default=64, show_default=True, type=click.IntRange(1), help="Output tokens where none are asked."
)
@click.option("--stop-after", type=Span(), metavar="N|N..M", help="The model ends by itself after so many tokens.")
@click.option("--ignore-eos/--no-ignore-eos", "honours_ignore_eos", default=True, help="Whether ignore_eos is obeyed.")
@click.option("--tokens-per-frame", default=1, show_default=True, type=click.IntRange(1), help="Tokens in one frame.")
@click.option("--role-lead", type=TIME, help="Send an empty role frame this long before the first token.")
@click.option("--late-headers", is_flag=True, help="Send the headers with the first frame, not at once.")
@click.option(
    "--usage",
    type=click.Choice(["own", "finish", "running", "none"]),
    default="own",
    show_default=True,
    help="Usage in a frame of its own (when asked), in the finish frame, in every frame, or never.",
)
@click.option("--reasoning", "reasoning_tokens", default=0, type=click.IntRange(0), help="Tokens of reasoning first.")
@click.option(
    "--reasoning-field",
    type=click.Choice(["reasoning_content", "reasoning"]),
    default="reasoning_content",
    show_default=True,
    help="Name of the field they come in.",
)
@click.option(
    "--fail",
    "faults",
    multiple=True,
    metavar="KIND:SHARE[:AFTER]",
    help=f"Share of requests that fail, e.g. cut:10%:5; may repeat. Kinds: {FAULT_NAMES.replace(' ', ', ')}.",
)
@click.option("--crlf", is_flag=True, help="End lines with CR LF.")
@click.option("--comments", is_flag=True, help="Mix comment lines into the stream.")
@click.option("--refuse-stream-options", is_flag=True, help="Answer 400 where stream_options is sent.")
@click.option("--tokenize/--no-tokenize", default=True, help="Whether POST /tokenize exists (one token a word).")
@click.option("--api-key", help="Answer 401 without this key.")
@click.option("--template-tokens", default=5, show_default=True, type=click.IntRange(0), help="Added to a chat prompt.")
@click.option("--null", is_flag=True, help="Null server: answers at once, as fast as it can.")
@click.option("--seed", default=0, show_default=True, type=int, help="Same seed and order, same answers.")
@click.option("--truth", metavar="FILE", help="Log what really happened, one JSON object a request; also GET /truth.")
@click.option("--tls", is_flag=True, help="Serve TLS with a throw-away certificate (needs the openssl program).")
@click.option(
    "--tls-cert", "certificate", type=click.Path(exists=True, dir_okay=False), help="Serve TLS with this one."
)
@click.option("--tls-key", "key", type=click.Path(exists=True, dir_okay=False), help="The certificate's key.")
@click.option("--requests-limit", type=click.IntRange(1), help="End after so many answered requests.")
@click.option("--for", "for_s", type=TIME, help="End after this time.")
@shared_options
def command(session: Session, **options: Any) -> None:
    """Serve scripted answers on 127.0.0.1 until stopped (Ctrl-C, SIGTERM).

    Every time counts from the moment a request was fully read. The truth log holds ns of CLOCK_MONOTONIC.
    """
    from nilometer.engines.mock import Hosting, serve, served
    from nilometer.engines.mock_script import Script, parse_fault

    if options.pop("list_services"):
        _list_services(session)
        return
    name = options.pop("service_name")
    service = None if name is None else _service(name)
    hosting = Hosting(
        port=options.pop("port"),
        truth=options.pop("truth"),
        tls=options.pop("tls"),
        certificate=options.pop("certificate"),
        key=options.pop("key"),
        requests_limit=options.pop("requests_limit"),
        for_s=options.pop("for_s"),
    )
    if hosting.key and not hosting.certificate:
        raise SpecError("mock_option", option="--tls-key needs --tls-cert")
    models, faults = tuple(options.pop("models")), [parse_fault(text) for text in options.pop("faults")]
    times: dict[str, Any] = {field: _ms(options.pop(name)) for name, field in _TIMES.items()}
    script = served(Script(models=models, faults=faults, **times, **options), service)

    def ready(url: str) -> None:
        machine = {"nilometer": __version__, "format": 1, "kind": "mock", "url": url, "models": script.models}
        session.emit(machine | {"service": name}, lambda: url)
        session.tell(session.words.say("screen.mock_serving", url=url, model=script.models[0]))
        if name is not None:
            session.tell(session.words.say("screen.mock_playing", url=url, service=name))

    answered = serve(script, hosting, ready, service)
    session.tell(session.words.say("screen.mock_done", requests=answered, truth=hosting.truth or "-"))


def _service(name: str) -> Service:
    """The service asked for; no option beside it may say when an answer comes: slug `mock_option`."""
    from nilometer.engines.mock_service import service

    context = click.get_current_context()
    for one in context.command.params:
        given = context.get_parameter_source(str(one.name)) is not ParameterSource.DEFAULT
        if given and one.name in _PACING:
            raise SpecError("mock_option", option=f"{one.opts[0]} --service")
    return service(name)


def _list_services(session: Session) -> None:
    from nilometer.engines.mock_service import ready

    rows = [(name, session.words.say(f"screen.mock_service_{name.replace('-', '_')}")) for name in ready()]
    machine = {
        "nilometer": __version__,
        "format": 1,
        "kind": "mock_services",
        "services": [{"name": name, "says": says} for name, says in rows],
    }
    width = max(len(name) for name, _ in rows)
    session.emit(machine, lambda: "\n".join(f"{name:<{width}}  {says}" for name, says in rows))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
