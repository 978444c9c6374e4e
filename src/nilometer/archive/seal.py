"""The last guard before a run is written: whatever may hold a secret goes in as `***`.

The Spec and the Environment should hold none by then; a run in which nothing is found passes unchanged.
"""

from __future__ import annotations

from msgspec.structs import replace

from nilometer.core.environment import Environment
from nilometer.core.errors import SpecError
from nilometer.core.group import Group, parted, with_plan
from nilometer.core.run import Run
from nilometer.core.secrets import mask_flags
from nilometer.core.spec import from_tree, to_toml, without_secrets


def seal_run(run: Run) -> Run:
    """The run with header values, URL credentials, key-like query values and engine flags masked."""
    return replace(run, spec=without_secrets(run.spec), environment=_seal_environment(run.environment))


def seal_group(group: Group) -> Group:
    """The same for the TOML of a group; text that is no Spec is left as it is."""
    if group.spec is None:
        return group
    try:
        tree, plan = parted(group.spec, group.type)
        spec = from_tree(tree)
    except (SpecError, ValueError):
        return group
    sealed = without_secrets(spec)
    toml = to_toml(sealed)
    return group if sealed == spec else replace(group, spec=with_plan(toml, group.type, plan) if plan else toml)


def _seal_environment(environment: Environment) -> Environment:
    flags = environment.engine.flags
    return replace(environment, engine=replace(environment.engine, flags=None if flags is None else mask_flags(flags)))
