"""Cards, hashes and atomic writing of the model cache."""

import hashlib
import os
from pathlib import Path

import pytest

from nilometer.core.errors import DataError, EngineError
from nilometer.engines import model_cache
from nilometer.engines.model_cache import Card
from nilometer.engines.tell import quiet


def card_for(path: Path) -> Card:
    now = path.stat()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Card(sha256=digest, size_bytes=now.st_size, mtime_ns=now.st_mtime_ns, precision="Q4_0")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"weights" * 100)
    model_cache.write_card(path, card_for(path))
    return path


def test_a_card_describes_its_file(model: Path) -> None:
    assert model_cache.read_card(model) == card_for(model)
    assert model_cache.is_whole(model, hashed=True)
    assert sorted(path.name for path in model.parent.iterdir()) == ["m.gguf", "m.gguf.json"]


def test_a_file_of_another_size_or_time_is_not_described(model: Path) -> None:
    card = model_cache.read_card(model)
    assert card is not None
    with model.open("ab") as file:
        file.write(b"x")
    os.utime(model, ns=(card.mtime_ns, card.mtime_ns))
    assert model_cache.read_card(model) is None
    assert not model_cache.is_whole(model, hashed=False)


def test_other_bytes_of_the_same_size_and_time_are_found_by_the_hash(model: Path) -> None:
    card = model_cache.read_card(model)
    assert card is not None
    model.write_bytes(b"W" + model.read_bytes()[1:])
    os.utime(model, ns=(card.mtime_ns, card.mtime_ns))
    assert model_cache.is_whole(model, hashed=False)
    assert not model_cache.is_whole(model, hashed=True)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[1]"])
def test_a_damaged_card_is_no_card(model: Path, content: bytes) -> None:
    model.with_name("m.gguf.json").write_bytes(content)
    assert model_cache.read_card(model) is None


def write_new(part: Path) -> None:
    part.write_bytes(b"new")


def test_place_replaces_whole_files_and_leaves_nothing_of_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"former")

    def fail(part: Path) -> None:
        part.write_bytes(b"half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        model_cache.place(path, fail)
    assert path.read_bytes() == b"former"
    model_cache.place(path, write_new)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_the_hash_of_a_users_file_is_computed_once_and_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = tmp_path / "mine.gguf", tmp_path / "cache"
    path.write_bytes(b"one")
    read: list[Path] = []
    real = model_cache.sha256_of

    def counted(file: Path) -> str:
        read.append(file)
        return real(file)

    monkeypatch.setattr(model_cache, "sha256_of", counted)
    expected = hashlib.sha256(b"one").hexdigest()
    assert model_cache.hash_of_users_file(path, cache) == expected
    assert model_cache.hash_of_users_file(path, cache) == expected
    assert read == [path]
    path.write_bytes(b"two!")
    assert model_cache.hash_of_users_file(path, cache) == hashlib.sha256(b"two!").hexdigest()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cache", "mine.gguf"]


def test_a_file_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    for ask in (model_cache.sha256_of, lambda path: model_cache.hash_of_users_file(path, tmp_path)):
        with pytest.raises(DataError) as caught:
            ask(tmp_path / "none")
        assert caught.value.slug == "file_unreadable"


def test_alone_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "m.gguf.123.part").write_bytes(b"half")
    (tmp_path / "fetch-abc").mkdir()
    (tmp_path / "fetch-abc" / "x.whl").write_bytes(b"half")
    (tmp_path / "m.gguf").write_bytes(b"whole")
    with model_cache.alone(tmp_path, quiet):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "m.gguf"]


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError) as caught, model_cache.alone(tmp_path / "file" / "models", quiet):
        pass
    assert caught.value.slug == "cache_unwritable"


def test_a_full_disk_while_writing_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught, model_cache.alone(tmp_path, quiet):
        raise OSError(28, "No space left on device")
    assert caught.value.params == {"folder": str(tmp_path), "detail": "No space left on device"}
