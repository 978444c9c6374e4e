"""The options that say where the server's own figures come from, where that is not the target's own page.

They are no part of the Spec: an address may hold a key, and where a server is watched from is no condition of a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nilometer.core.errors import SpecError
from nilometer.core.secrets import in_url

from .spec_options import Command

if TYPE_CHECKING:
    from nilometer.experiment.server_side import PagesFrom

_OPTIONS = (
    click.option("--metrics-url", metavar="URL", help="Metrics page of the server, where it is not the target's own."),
    click.option(
        "--prometheus", metavar="URL", help="A Prometheus that has the server's metrics, asked after the run."
    ),
    click.option("--prometheus-match", metavar="LABELS", help="""Which server of its, such as 'job="vllm"'."""),
)


def pages_options(command: Command) -> Command:
    """Add them to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def pages_given(given: dict[str, Any]) -> PagesFrom:
    """What they say. Slugs `pages_twice`, `prometheus_match_alone`."""
    from nilometer.experiment.server_side import PagesFrom

    url, prometheus, match = (given.get(name) for name in ("metrics_url", "prometheus", "prometheus_match"))
    if url and prometheus:
        raise SpecError("pages_twice")
    if match and not prometheus:
        raise SpecError("prometheus_match_alone")
    return PagesFrom(url, prometheus, match or "")


def secrets_of_pages(given: dict[str, Any]) -> tuple[str, ...]:
    """Those in the addresses."""
    urls = (given.get("metrics_url"), given.get("prometheus"))
    return tuple(secret for url in urls if url for secret in in_url(url))
