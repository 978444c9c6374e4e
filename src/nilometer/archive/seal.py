"""The last guard before a run is written: whatever may hold a secret goes in as `***`.

The Spec and the Environment should hold none by then; a run in which nothing is found passes unchanged.
"""

from __future__ import annotations

from msgspec.structs import replace

from nilometer.core.environment import Environment
from nilometer.core.errors import SpecError
from nilometer.core.group import Group
from nilometer.core.run import Run
from nilometer.core.secrets import mask_flags
from nilometer.core.spec import from_toml, to_toml, without_secrets


def seal_run(run: Run) -> Run:
    """The run with header values, URL credentials, key-like query values and engine flags masked."""
    return replace(run, spec=without_secrets(run.spec), environment=_seal_environment(run.environment))


def seal_group(group: Group) -> Group:
    """The same for the TOML of a group; text that is no Spec is left as it is."""
    if group.spec is None:
        return group
    try:
        spec = from_toml(group.spec)
    except SpecError:
        return group
    sealed = without_secrets(spec)
    return group if sealed == spec else replace(group, spec=to_toml(sealed))


def _seal_environment(environment: Environment) -> Environment:
    flags = environment.engine.flags
    return replace(environment, engine=replace(environment.engine, flags=None if flags is None else mask_flags(flags)))
