"""What click says of a command line that cannot be, as an error of ours: one line, in both languages, with a next step.

Click tells apart what is wrong by the kind of its exception; what only stands in its sentence is taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from nilometer.core.errors import Param, SpecError
from nilometer.core.secrets import SHOWN, mask_url

from .values import Unfit

_QUOTED = re.compile(r"'(?P<value>.*)' (?P<detail>.*)", re.DOTALL)
_NO_COMMAND = getattr(click.exceptions, "NoSuchCommand", ())
"""Click before 8.4 has no such kind, and names none that is near."""
_FORMS = {click.INT: "0, 1, 42", click.FLOAT: "0.5, 2"}


def as_error(fault: click.ClickException, arguments: Sequence[str]) -> SpecError:
    """The error that says the same; `arguments` are those of the command line.

    Slugs `option_unknown`, `option_misspelt`, `option_without_value`, `flag_with_value`, `command_unknown`,
    `argument_missing`, `argument_extra`, `value_wrong`, `choice_wrong`, `file_unreadable`, what a value of ours says,
    and `usage_wrong` for all else.
    """
    context = fault.ctx if isinstance(fault, click.UsageError) else None
    place = {"command": "nilo" if context is None else context.command_path, "usage": _usage(context)}
    for kind, made in _KINDS:
        if isinstance(fault, kind):
            slug, params = made(fault, arguments)
            return SpecError(slug, **{**place, **params})
    if "extra argument" in fault.message:
        extra = fault.message.partition("(")[2].removesuffix(")")
        return SpecError("argument_extra", **place, extra=repr(mask_url(extra)[:80]))
    return SpecError("usage_wrong", **place, detail=" ".join(fault.format_message().split()))


def _usage(context: click.Context | None) -> str:
    """How the command is written."""
    return "" if context is None else " ".join([context.command_path, *context.command.collect_usage_pieces(context)])


def _no_option(fault: click.NoSuchOption, _: Sequence[str]) -> Told:
    params = [] if fault.ctx is None else fault.ctx.command.params
    begun = [name for param in params for name in param.opts if name.startswith(fault.option_name)]
    near = (*begun, *(fault.possibilities or ()))
    if not near:
        return "option_unknown", {"option": fault.option_name}
    return "option_misspelt", {"option": fault.option_name, "near": near[0]}


def _misused(fault: click.BadOptionUsage, arguments: Sequence[str]) -> Told:
    given = any(word.startswith(f"{fault.option_name}=") for word in arguments)
    return "flag_with_value" if given else "option_without_value", {"option": fault.option_name}


def _missing(fault: click.MissingParameter, _: Sequence[str]) -> Told:
    return "argument_missing", {"name": _name(fault.param)}


def _no_command(fault: Any, _: Sequence[str]) -> Told:
    known = fault.possibilities or fault.ctx.command.list_commands(fault.ctx)
    return "command_unknown", {"name": repr(fault.command_name), "known": ", ".join(known)}


def _unfit(fault: Unfit, _: Sequence[str]) -> Told:
    value = SHOWN if fault.value is None else repr(fault.value[:80])
    return fault.slug, {"option": _name(fault.param), "value": value, "form": fault.form}


def _wrong(fault: click.BadParameter, _: Sequence[str]) -> Told:
    """A value that click itself refuses."""
    kind = None if fault.param is None else fault.param.type
    told: dict[str, Param] = {"option": _name(fault.param), "value": fault.message.partition(" is not ")[0][:80]}
    quoted = _QUOTED.search(fault.message)
    if isinstance(kind, click.Path) and quoted is not None:
        return "file_unreadable", {"file": quoted["value"], "detail": quoted["detail"].rstrip(".")}
    if isinstance(kind, click.Choice):
        return "choice_wrong", {**told, "known": ", ".join(map(str, kind.choices))}
    if isinstance(kind, click.IntRange | click.FloatRange):
        return "value_wrong", {**told, "form": _range(kind)}
    if kind in _FORMS:
        return "value_wrong", {**told, "form": _FORMS[kind]}
    return "usage_wrong", {"detail": " ".join(fault.format_message().split())}


Told = tuple[str, dict[str, Param]]
_KINDS: tuple[tuple[Any, Callable[[Any, Sequence[str]], Told]], ...] = (
    (click.NoSuchOption, _no_option),
    (click.BadOptionUsage, _misused),
    (click.MissingParameter, _missing),
    (Unfit, _unfit),
    (click.BadParameter, _wrong),
    (_NO_COMMAND, _no_command),
)
"""Kind of exception -> what makes slug and parameters of it; a kind stands before those it is a case of."""


def _name(param: click.Parameter | None) -> str:
    """A parameter as the user writes it: the longest name of an option, the sign of an argument."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return "?" if param is None else param.human_readable_name


def _range(kind: click.IntRange | click.FloatRange) -> str:
    """`N, 1 <= N <= 64`."""
    low = "" if kind.min is None else f"{kind.min:g} {'<' if kind.min_open else '<='} "
    high = "" if kind.max is None else f" {'<' if kind.max_open else '<='} {kind.max:.10g}"
    return f"N, {low}N{high}"
