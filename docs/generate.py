"""Write the reference pages from the code and the locale files: `python -m docs.generate`; `--check` only compares.

Nothing in a page is typed by hand: errors and findings come from the catalogues of words, causes and metrics from their
tables, TOML keys from `core.spec`, the commands from their own --help, the archive from its schema, models, devices and
what plans are off from the tables and benches of plans, how right the diagnosis is from what its bench kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
import msgspec

from nilometer.cli.root import COMMANDS, nilo
from nilometer.core.spec import Spec
from nilometer.diagnose.rules import RULES, Rule
from nilometer.metrics.catalogue import METRICS
from nilometer.text.i18n import LANGUAGES, Catalogue

from . import diagnosis_tables, plan_tables, service_tables
from .markdown import row_of

FOLDER = Path(__file__).parent / "reference"
SUFFIX = {"en": ".md", "zh": ".zh-CN.md"}
HELP_COLUMNS = 100
_TOML_NAMES: dict[Any, str] = {str: "string", int: "integer", float: "float", bool: "boolean"}


def pages() -> dict[Path, str]:
    """Every reference page by its path."""
    return {
        FOLDER / f"{name}{SUFFIX[lang]}": _page(name, body(Catalogue(lang)), Catalogue(lang))
        for name, body in BODIES.items()
        for lang in LANGUAGES
    }


def errors(words: Catalogue) -> Iterator[str]:
    """One heading for each slug of an error: what it says, what to do."""
    return _slugs("error", words)


def findings(words: Catalogue) -> Iterator[str]:
    """The same for findings."""
    return _slugs("finding", words)


def causes(words: Catalogue) -> Iterator[str]:
    """What can limit a service, what makes figures look other than they are: symptom, how to confirm, first move."""
    for kind in ("validity", "cause"):
        yield f"\n## {words.say(f'doc.causes.{kind}')}\n"
        yield row_of(*(words.say(f"doc.column.{name}") for name in ("bottleneck", "symptom", "confirm", "move")))
        yield row_of(*["---"] * 4)
        yield from (_cause(rule, words) for rule in RULES if rule.kind == kind)


def _cause(rule: Rule, words: Catalogue) -> str:
    told = (words.say(f"cause.{rule.slug}.{part}") for part in ("symptom", "confirm", "move"))
    return row_of(f"{words.say(f'cause.{rule.slug}.name')} `{rule.slug}`", *told)


def metrics(words: Catalogue) -> Iterator[str]:
    """The table of metrics: name, words, meaning, unit, better direction, place in the machine form."""
    better = {"lower": words.say("doc.lower"), "higher": words.say("doc.higher"), None: "-"}
    yield row_of(*(words.say(f"doc.column.{name}") for name in ("metric", "name", "meaning", "unit", "better", "path")))
    yield row_of(*["---"] * 6)
    for metric in METRICS:
        name, meaning = words.say(f"metric.{metric.name}"), words.say(f"meaning.{metric.name}")
        yield row_of(f"`{metric.name}`", name, meaning, metric.unit, better[metric.better], f"`{metric.path}`")


def toml(words: Catalogue) -> Iterator[str]:
    """The keys of a TOML spec, one table for each of its sections."""
    sections = [(None, Spec)]
    sections += [(field.name, field.type) for field in _fields(Spec) if _is_section(field.type)]
    for section, struct in sections:
        yield f"\n## `[{section}]`\n" if section else f"\n## {words.say('doc.top_level')}\n"
        yield row_of(*(words.say(f"doc.column.{name}") for name in ("key", "type", "default", "meaning")))
        yield row_of(*["---"] * 4)
        for field in _fields(struct):
            if not _is_section(field.type):
                path = f"{section}.{field.name}" if section else field.name
                meaning = words.say(f"key.{path}")
                yield row_of(f"`{field.name}`", _type(field.type), _default(field), meaning)


def cli(_words: Catalogue) -> Iterator[str]:
    """The --help of every command and subcommand."""
    yield from _help(nilo, "nilo", None)


def archive(_words: Catalogue) -> Iterator[str]:
    """The schema as it is applied, comments and all."""
    folder = resources.files("nilometer.archive").joinpath("schema")
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".sql"):
            yield f"\n## `{file.name}`\n\n```sql\n{file.read_text('utf-8').strip()}\n```"


BODIES: dict[str, Callable[[Catalogue], Iterator[str]]] = {
    "errors": errors,
    "findings": findings,
    "causes": causes,
    "metrics": metrics,
    "toml": toml,
    "cli": cli,
    "archive": archive,
    "models": plan_tables.models,
    "devices": plan_tables.devices,
    "plan-accuracy": plan_tables.accuracy,
    "services": service_tables.services,
    "diagnosis-accuracy": diagnosis_tables.accuracy,
}


def _page(name: str, body: Iterator[str], words: Catalogue) -> str:
    head = f"# {words.say(f'doc.{name}.title')}\n\n{words.say(f'doc.{name}.intro')}\n"
    return head + "\n" + "\n".join(body).strip("\n") + "\n"


def _slugs(kind: str, words: Catalogue) -> Iterator[str]:
    for key in sorted(words.keys()):
        if key.startswith(f"{kind}.") and key.endswith(".what"):
            slug = key.split(".")[1]
            what, step = (_bare(words.template(f"{kind}.{slug}.{part}")) for part in ("what", "next"))
            yield f"\n## {slug}\n\n{what}\n\n{words.say('screen.next')}: {step}"


def _bare(template: str) -> str:
    """A sentence with its parameters as `{name}`, without the form of their numbers."""
    counted = re.sub(r"\{(\w+):of\|[^|}]*\|([^}]*)\}", r"{\1} \2", template)
    return re.sub(r"\{(\w+):[^}]*\}", r"{\1}", counted)


def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _type(kind: Any) -> str:
    """The annotation in TOML's words; a key that may be None is one that may be left out."""
    if kind in _TOML_NAMES:
        return _TOML_NAMES[kind]
    if get_origin(kind) is dict:
        return "table"
    if get_origin(kind) is Literal:
        return " / ".join(f'"{value}"' for value in get_args(kind))
    return " / ".join(_type(part) for part in get_args(kind) if part is not type(None))


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is None or field.default is msgspec.NODEFAULT:
        return "-"
    return "`" + msgspec.json.encode(field.default).decode() + "`"


def _help(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": HELP_COLUMNS, "max_content_width": HELP_COLUMNS}
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent, **settings)
    yield f"\n## `{path}`\n\n```text\n{command.get_help(context).strip()}\n```"
    if isinstance(command, click.Group):
        for name in COMMANDS if command is nilo else command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _help(child, f"{path} {name}", context)


def main() -> int:
    """Write the pages, or with --check list those that are not as they should be: exit 1."""
    wanted = pages()
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
    stale += [path for path in FOLDER.glob("*.md") if path not in wanted and not path.name.startswith("README")]
    if "--check" in sys.argv[1:]:
        sys.stdout.writelines(f"stale: {path.name}\n" for path in sorted(stale))
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path, text in wanted.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
