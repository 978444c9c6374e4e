"""A canary in every place where a secret may stand: no byte of it reaches the archive's files."""

from __future__ import annotations

from pathlib import Path

from tests.unit.archive.samples import make_records, make_run

from nilometer.archive.sqlite import SqliteArchive
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


def test_no_secret_reaches_the_archive(tmp_path: Path) -> None:
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        archive.put_group(Group(id="g", type="repeat", started_wall_ns=1, spec=to_toml(SPEC)))
        archive.put(make_run(spec=SPEC, environment=ENVIRONMENT, group="g"), make_records(3))
        held = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert {name for name, content in held.items() if CANARY.encode() in content} == set()
        assert any(b"X-Team" in content for content in held.values())
        assert archive.get(make_run().id).spec.target == "https://***@host/v1?api_key=***"
