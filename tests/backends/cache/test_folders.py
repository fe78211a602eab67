"""Folders for their owner only: what is made, what is not trusted, and what is removed."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
import zipimport
from pathlib import Path

import pytest

from plusequals.backends.cache import cache, file_lock, folders
from plusequals.backends.cache.folders import Untrusted


def test_what_is_made_is_its_owners_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        held = folders.open_folder(str(tmp_path / "a" / "b"), create=True)
        made = folders.make_first((str(tmp_path),), "build-")
    finally:
        os.umask(before)
    assert os.path.samestat(os.fstat(held), (tmp_path / "a" / "b").stat())
    os.close(held)
    for path in (tmp_path / "a", tmp_path / "a" / "b", Path(made)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert Path(made).parent == tmp_path and Path(made).name.startswith("build-")


def test_the_first_place_that_allows_it_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = folders.make_first(map(str, (tmp_path / "no", tmp_path / "file", tmp_path)), "x")
    assert Path(made).parent == tmp_path
    with pytest.raises(NotADirectoryError):
        folders.make_first(map(str, (tmp_path / "no", tmp_path / "file")), "x")
    with pytest.raises(OSError, match="no place"):
        folders.make_first((), "x")


def test_what_others_can_change_is_not_trusted(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o700)
    assert folders.trust_problem(str(inner)) is None
    (tmp_path / "link").symlink_to(inner)
    (tmp_path / "file").write_text("")
    said = {name: folders.trust_problem(str(tmp_path / name)) for name in ("link", "file")}
    assert said["link"] == f"{tmp_path / 'link'} is a link"
    assert said["file"] == f"{tmp_path / 'file'} is not a folder"
    inner.chmod(0o770)
    with pytest.raises(Untrusted, match="others can write to .*inner"):
        folders.open_folder(str(inner), create=False)


def test_a_folder_is_removed_with_all_in_it_and_nothing_beside_it(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    for folder in (kept, gone / "deep" / "deeper"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("")
    (gone / "link").symlink_to(kept)
    (gone / "nowhere").symlink_to(tmp_path / "none")
    folders.remove(str(gone))
    folders.remove(str(gone))
    assert not gone.exists()
    assert (kept / "file").exists()


def test_old_leftovers_are_swept_and_old_files_give_way(tmp_path: Path) -> None:
    for age, name in enumerate(("a.x", "b.x", "c.x", "d.tmp", "e.txt")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    for name, made in (("build-1", 10), ("build-2", 2000), ("build-3", 10)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (made, made))
    holding = file_lock.hold_path(str(tmp_path / "build-3"))
    assert holding is not None
    folders.sweep(str(tmp_path), 1500, 0, "build-", "", ".tmp")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.x", "b.x", "build-2", "build-3", "c.x", "e.txt"]
    os.close(holding)
    folders.sweep(str(tmp_path), 1500, 0, "build-", "", ".tmp")
    assert not (tmp_path / "build-3").exists()
    folders.shrink(str(tmp_path), 200, ".x")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.x", "b.x", "build-2", "e.txt"]


def test_texts_of_the_package_are_read_from_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("csrc/one.c", "int one;\n")
    loader = zipimport.zipimporter(str(tmp_path / "lib.zip"))
    for module in (folders, cache):
        monkeypatch.setattr(module, "__loader__", loader)
    assert folders.read_package_text(str(tmp_path / "lib.zip" / "csrc" / "one.c")) == "int one;\n"
    stamps, digests = {cache._stamp()}, {cache._digest_of_sources(("dsl",))}
    with zipfile.ZipFile(tmp_path / "lib.zip", "a") as archive:
        archive.writestr("csrc/two.c", "int two;\n")
    assert cache._stamp() not in stamps and cache._digest_of_sources(("dsl",)) not in digests
    (tmp_path / "plain.c").write_text("int three;\n")
    assert folders.read_package_text(str(tmp_path / "plain.c")) == "int three;\n"


def test_only_the_latest_of_our_files_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"report-{number}.txt").write_text("")
        os.utime(tmp_path / f"report-{number}.txt", (number, number))
    (tmp_path / "other.txt").write_text("")
    folders.keep_latest(str(tmp_path), "report-", ".txt", 2)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["other.txt", "report-3.txt", "report-4.txt"]


def test_only_a_shortage_of_open_files_is_one() -> None:
    problem = folders.descriptor_shortage(OSError(errno.EMFILE, "Too many open files"))
    assert problem is not None and problem.code == "CD0814"
    assert "ulimit" in str(problem) and "Too many open files" in str(problem)
    assert folders.descriptor_shortage(FileNotFoundError(errno.ENOENT, "none")) is None
