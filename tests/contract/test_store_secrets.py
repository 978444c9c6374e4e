"""A canary in every place where a secret may stand: no byte of it reaches the archive's files."""

from __future__ import annotations

from pathlib import Path

from tests.contract.conftest import Past
from tests.unit.archive.samples import make_records, make_run

from nilometer.archive.address import on_server
from nilometer.archive.store import open_archive
from nilometer.core.environment import EngineFacts, Environment
from nilometer.core.group import Group
from nilometer.core.spec import Http, Labels, Sampling, Spec, to_toml

CANARY = "canary-7f3a-9e1c"
SPEC = Spec(
    target=f"https://user:{CANARY}@host/v1?api_key={CANARY}",
    http=Http(
        headers={"Authorization": f"Bearer {CANARY}", "X-Team": CANARY}, proxy=f"http://user:{CANARY}@proxy:3128"
    ),
    sampling=Sampling(extra_body={"user_token": CANARY, "tools": [{"api_key": CANARY}]}),
    labels=Labels(extra={"password": CANARY, "team": "blue"}),
)
ENVIRONMENT = Environment(engine=EngineFacts(flags=["--api-key", CANARY, f"--hf-token={CANARY}", "-np", "4"]))


def held_by(url: str, past: Past) -> bytes:
    """All that the archive holds, as bytes."""
    if not on_server(url):
        folder = Path(url.removeprefix("sqlite:///")).parent
        return b"".join(path.read_bytes() for path in folder.iterdir())
    tables = [name for (name,) in past("SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)")]
    ours = [name for name in tables if not name.startswith(("pg_", "sql_"))]
    return b"".join(text.encode() for name in ours for (text,) in past(f"SELECT t::text FROM {name} AS t"))


def test_no_secret_reaches_the_archive(url: str, past: Past) -> None:
    with open_archive(url) as archive:
        archive.put_group(Group(id="g", type="repeat", started_wall_ns=1, spec=to_toml(SPEC)))
        archive.put(make_run(spec=SPEC, environment=ENVIRONMENT, group="g"), make_records(3))
        held = held_by(url, past)
        assert CANARY.encode() not in held
        assert b"X-Team" in held
        assert archive.get(make_run().id).spec.target == "https://***@host/v1?api_key=***"
