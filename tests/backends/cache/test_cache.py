"""The cache: what it refuses to read, what it survives, and that nothing of it fails a call."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plusequals.backends.cache import cache, folders
from plusequals.backends.cache.cache import (
    Cache,
    CacheWarning,
    Entry,
    Untrusted,
    cache_key,
    pack,
    unpack,
)
from plusequals.base import process_state, settings

KEY = "ab" * 32
ENTRY = Entry({"entry": "softmax"}, "int softmax;\n", bytes(range(256)))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with settings.override(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache" / f"v{cache.SCHEMA}"


def test_what_is_put_is_got(folder: Path) -> None:
    assert Cache().get(KEY) is None
    assert not folder.exists()
    assert Cache().put(KEY, ENTRY)
    assert Cache().get(KEY) == ENTRY
    assert [x.name for x in folder.iterdir()] == [f"{KEY}.entry"]


def test_only_the_owner_may_enter_whatever_the_umask(folder: Path) -> None:
    old = os.umask(0)
    try:
        assert Cache().put(KEY, ENTRY)
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(x.stat().st_mode) for x in (folder.parent, folder)]
    assert modes == [0o700, 0o700]
    assert stat.S_IMODE((folder / f"{KEY}.entry").stat().st_mode) == 0o600


def test_no_prefix_and_no_flipped_byte_is_accepted() -> None:
    whole = pack(KEY, ENTRY)
    assert unpack(KEY, whole) == ENTRY
    for size in range(len(whole)):
        with pytest.raises(Untrusted):
            unpack(KEY, whole[:size])
    for at in range(len(whole)):
        with pytest.raises(Untrusted):
            unpack(KEY, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(Untrusted):
        unpack(KEY, whole + b"\0")
    with pytest.raises(Untrusted):
        unpack("cd" * 32, whole)


@pytest.mark.parametrize("damage", ["cut", "flip", "link", "open", "folder", "fifo", "empty"])
def test_a_damaged_entry_is_told_once_and_replaced(folder: Path, damage: str) -> None:
    store = Cache()
    store.put(KEY, ENTRY)
    path = folder / f"{KEY}.entry"
    data = path.read_bytes()
    match damage:
        case "cut" | "empty":
            path.write_bytes(data[: len(data) // 2 if damage == "cut" else 0])
        case "flip":
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 0x80]))
        case "link":
            path.rename(folder / "elsewhere")
            path.symlink_to(folder / "elsewhere")
        case "open":
            path.chmod(0o666)
        case _:
            path.unlink()
            path.mkdir() if damage == "folder" else os.mkfifo(path)
    with pytest.warns(CacheWarning, match="not used, and made again") as told:
        assert store.get(KEY) is None
    assert len(told) == 1
    assert told[0].filename == __file__
    if damage == "folder":
        (path / "full").touch()
    assert store.put(KEY, ENTRY)
    assert store.get(KEY) == ENTRY
    assert not path.is_symlink()


def test_folder_open_to_others_is_not_used(folder: Path) -> None:
    Cache().put(KEY, ENTRY)
    for place, mode in ((folder, 0o770), (folder, 0o702), (folder.parent, 0o777)):
        place.chmod(mode)
        process_state.reset()
        store = Cache()
        with pytest.warns(CacheWarning, match="others can write to .* makes it yours") as told:
            assert store.get(KEY) is None
            assert not store.put(KEY, ENTRY)
        assert len(told) == 1
        place.chmod(0o700)
    assert Cache().get(KEY) == ENTRY


@pytest.mark.parametrize("kind", ["link", "file"])
def test_folder_that_is_none_is_not_used(folder: Path, kind: str) -> None:
    folder.parent.mkdir(mode=0o700)
    if kind == "link":
        (folder.parent / "real").mkdir(mode=0o700)
        folder.symlink_to(folder.parent / "real")
    else:
        folder.write_text("")
    store = Cache()
    with pytest.warns(CacheWarning, match="is not used"):
        assert not store.put(KEY, ENTRY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get(KEY) is None
        with store.scratch() as scratch, store.building(KEY):
            assert Path(scratch).is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_folder_and_entry_of_another_user_are_not_used(folder: Path) -> None:
    store = Cache()
    store.put(KEY, ENTRY)
    os.chown(folder / f"{KEY}.entry", 12345, 12345)
    with pytest.warns(CacheWarning, match="others than its owner"):
        assert store.get(KEY) is None
    os.chown(folder, 12345, 12345)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert Cache().get(KEY) is None


def test_a_full_disk_harms_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    store = Cache()
    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CacheWarning, match="could not be kept on disk: No space left") as told:
        assert not store.put(KEY, ENTRY)
        assert not store.put("cd" * 32, ENTRY)
    assert len(told) == 1
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Cache().put(KEY, ENTRY)
    opening = os.open

    def read_only(path: str, flags: int, *rest: int, **options: int) -> int:
        if flags & os.O_CREAT and str(path).endswith(".tmp"):
            raise OSError(30, "Read-only file system")
        return opening(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", read_only)
    store = Cache()
    with pytest.warns(CacheWarning, match="could not be kept on disk: Read-only"):
        assert not store.put("cd" * 32, ENTRY)
    assert store.get(KEY) == ENTRY


def test_scratch_is_elsewhere_where_the_cache_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = os.mkdir

    def refusing(path: str, mode: int) -> None:
        if os.path.dirname(path) == str(folder):
            raise OSError(30, "Read-only file system")
        making(path, mode)

    monkeypatch.setattr(os, "mkdir", refusing)
    with Cache().scratch() as scratch:
        assert os.path.isdir(scratch)
        assert os.path.dirname(scratch) == tempfile.gettempdir()
    assert not os.path.exists(scratch)


def test_scratch_is_elsewhere_where_there_is_hardly_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = os.statvfs

    def full(path: str) -> object:
        found = room(path)
        little = SimpleNamespace(f_bavail=1000, f_frsize=1000)
        return little if path == str(folder) else found

    monkeypatch.setattr(os, "statvfs", full)
    with Cache().scratch() as scratch:
        assert os.path.dirname(scratch) == tempfile.gettempdir()
    monkeypatch.setattr(cache, "_is_full", lambda folder: True)
    with Cache().scratch() as scratch:
        assert os.path.dirname(scratch) == str(folder)


def test_no_folder_of_a_variable_is_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    with settings.override(cache_dir=""):
        monkeypatch.delenv("ANDROID_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", "some/folder")
        monkeypatch.setenv("HOME", "home")
        assert cache.root() == os.path.abspath(f"home/.cache/plusequals/v{cache.SCHEMA}")


def test_a_current_folder_that_is_gone_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with settings.override(cache_dir="relative"):
        store = Cache()
        assert not store.put(KEY, ENTRY)
        assert store.get(KEY) is None
        with store.scratch() as scratch:
            assert os.path.isdir(scratch)


def test_deleted_while_running_is_made_again(folder: Path) -> None:
    store = Cache()
    store.put(KEY, ENTRY)
    shutil.rmtree(folder.parent)
    assert store.get(KEY) is None
    assert store.put(KEY, ENTRY)
    assert store.get(KEY) == ENTRY


@pytest.mark.parametrize("name", ["with space", "größe-数", "x" * 210, "quo'te\"s;$(id)"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    with settings.override(cache_dir=str(tmp_path / name)):
        assert Cache().put(KEY, ENTRY)
        assert Cache().get(KEY) == ENTRY
        assert (tmp_path / name / f"v{cache.SCHEMA}").is_dir()


def test_switched_off_writes_nothing(folder: Path) -> None:
    with settings.override(cache=False):
        assert not Cache().put(KEY, ENTRY)
        assert Cache().get(KEY) is None
        with Cache().building(KEY), Cache().scratch() as scratch:
            assert Path(scratch).is_dir()
            assert folder not in Path(scratch).parents
    assert not folder.exists()


def test_scratch_is_private_and_removed(folder: Path) -> None:
    with Cache().scratch() as scratch:
        assert Path(scratch).parent == folder
        assert stat.S_IMODE(os.stat(scratch).st_mode) == 0o700
        (Path(scratch) / "x").write_text("x")
    assert not os.path.exists(scratch)


def test_a_lock_that_is_held_only_costs_its_timeout() -> None:
    entered = []
    with Cache().building(KEY), settings.override(cache_timeout=0.05), Cache().building(KEY):
        entered.append(True)
    assert entered


def test_the_lock_keeps_a_second_builder_out() -> None:
    order: list[str] = []
    inside = threading.Event()
    chosen = settings.current().cache_dir

    def second() -> None:
        inside.wait(10)
        with settings.override(cache_dir=chosen), Cache().building(KEY):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with Cache().building(KEY):
        inside.set()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_what_killed_processes_left_is_swept(folder: Path) -> None:
    Cache().put(KEY, ENTRY)
    old, names = time.time() - 60, ("dead", "alive")
    paths = [folder / f"{cache._SCRATCH}{name}" for name in names]
    for path in paths:
        path.mkdir()
    (folder / f"{KEY}.entry.1.tmp").write_text("")
    for path in (*paths, folder / f"{KEY}.entry.1.tmp"):
        os.utime(path, (old, old))
    text = (
        "import sys, time\n"
        "from plusequals.backends.cache import file_lock as lock\n"
        "assert lock.hold_path(sys.argv[1])\n"
        "print(flush=True)\ntime.sleep(60)"
    )
    command = [sys.executable, "-c", text, str(paths[1])]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline()
        (folder / f"{cache._SCRATCH}new").mkdir()
        Cache().put(KEY, ENTRY)
        left = sorted(x.name.removeprefix(cache._SCRATCH) for x in folder.iterdir())
        assert left == [f"{KEY}.entry", "alive", "new"]
        process.kill()
        process.wait()
    Cache().put(KEY, ENTRY)
    assert not paths[1].exists()


def test_the_oldest_entries_give_way(folder: Path) -> None:
    large = Entry({}, "", bytes(400_000))
    keys = [f"{number:02d}" * 32 for number in range(4)]
    for age, key in enumerate(reversed(keys)):
        Cache().put(key, large)
        made = time.time() - 100 * age
        os.utime(folder / f"{key}.entry", (made, made))
    with settings.override(cache_size=1):
        Cache().put(KEY, ENTRY)
    left = sorted(x.name[:2] for x in folder.glob("*.entry"))
    assert left == ["02", "03", "ab"]


def test_any_part_changes_the_key_and_order_does_not() -> None:
    one = cache_key(text="int f;", flags=["-O2"], target="x")
    assert one == cache_key(target="x", flags=["-O2"], text="int f;")
    others = [
        cache_key(text="int g;", flags=["-O2"], target="x"),
        cache_key(text="int f;", flags=["-O3"], target="x"),
        cache_key(text="int f;", flags=["-O2"], target="y"),
    ]
    assert len({one, *others}) == 4


def test_key_is_the_same_in_every_process() -> None:
    text = "from plusequals.backends.cache.cache import cache_key; print(cache_key(a=1, b=['x']))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", text], cwd=Path(__file__).parents[3], stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
        )
        for seed in ("1", "2")
    ]  # fmt: skip
    one, two = (process.communicate()[0].strip() for process in running)
    assert one == two
    assert len(one) == 64


def test_the_stamp_changes_with_every_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("backends/one.py", "dsl/two.py", "lowering/deep/three.c", "dsl/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert cache.is_unchanged() and cache.package_stamp() == cache.package_stamp()
    monkeypatch.setattr(cache, "_PACKAGE", str(tmp_path))
    assert not cache.is_unchanged()
    stamps = {cache._stamp()}
    (tmp_path / "dsl" / "notes.txt").write_text("22")
    assert {cache._stamp()} == stamps
    for name in ("backends/one.py", "dsl/two.py", "lowering/deep/three.c", "dsl/four.py"):
        (tmp_path / name).write_text("22")
        stamps.add(cache._stamp())
    (tmp_path / "dsl" / "two.py").unlink()
    stamps.add(cache._stamp())
    assert len(stamps) == 6


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A shared cache with an entry, while the own one is empty."""
    Cache().put(KEY, ENTRY)
    assert cache.export(str(tmp_path / "shared"))[0] == 1
    shutil.rmtree(tmp_path / "cache")
    with settings.override(shared_cache_dir=str(tmp_path / "shared")):
        yield tmp_path / "shared" / f"v{cache.SCHEMA}"


def test_a_shared_cache_is_read_and_never_written(folder: Path, shared: Path) -> None:
    (path,) = shared.iterdir()
    before = path.stat()
    assert stat.S_IMODE(before.st_mode) == 0o644
    assert Cache().get(KEY) == ENTRY
    assert not folder.exists()
    other = Entry({"entry": "own"}, "", b"")
    assert Cache().put(KEY, other) and Cache().get(KEY) == other
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    with settings.override(cache=False):
        assert Cache().get(KEY) is None
    with settings.override(shared_cache_dir=""):
        assert Cache().get("cd" * 32) is None


@pytest.mark.parametrize("what", ["flip", "group", "folder", "above", "fifo", "link", "user"])
def test_a_shared_cache_that_others_can_write_is_not_used(shared: Path, what: str) -> None:
    (path,) = shared.iterdir()
    data = path.read_bytes()
    named = "root"
    match what:
        case "flip":
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "group":
            path.chmod(0o664)
        case "folder":
            shared.chmod(0o775)
        case "above":
            shared.parent.chmod(0o777)
        case "fifo" | "link":
            path.unlink()
            os.mkfifo(path) if what == "fifo" else path.symlink_to("/dev/zero")
        case "user":
            named = "nobody-of-that-name"
    store = Cache()
    with (
        settings.override(shared_cache_owner=named),
        pytest.warns(CacheWarning, match="shared cache") as told,
    ):
        assert store.get(KEY) is None and store.get(KEY) is None
    assert len(told) == 1
    assert "shared_cache_owner" in str(told[0].message) or what != "user"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_whose_entries_are_believed_is_said(shared: Path) -> None:
    for path in (shared, *shared.iterdir()):
        os.chown(path, 12345, -1)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert Cache().get(KEY) is None
    with settings.override(shared_cache_owner="12345"):
        assert Cache().get(KEY) == ENTRY


def test_only_sound_entries_are_exported(folder: Path, tmp_path: Path) -> None:
    store = Cache()
    for key in ("ab" * 32, "cd" * 32):
        store.put(key, ENTRY)
    (folder / f"{'cd' * 32}.entry").write_bytes(b"damaged")
    count, size = cache.export(str(tmp_path / "there"))
    (path,) = (tmp_path / "there" / folder.name).iterdir()
    assert (count, size) == (1, path.stat().st_size)
    (tmp_path / "there" / folder.name).chmod(0o777)
    with pytest.raises(Untrusted):
        cache.export(str(tmp_path / "there"))


def test_what_is_wrong_with_a_folder_is_told_once(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.warns(CacheWarning) as told:
        for _ in range(3):
            assert Cache().get(KEY) is None
    assert len(told) == 1


@pytest.mark.parametrize("is_open", [False, True])
def test_why_a_shared_cache_is_not_used_is_said(shared: Path, is_open: bool) -> None:
    assert cache.shared_problem() is None
    if is_open:
        shared.chmod(0o777)
        assert "write" in (cache.shared_problem() or "")
    else:
        shutil.rmtree(shared)
        assert str(shared) in (cache.shared_problem() or "")


def test_the_stamp_is_that_of_the_sources_when_it_was_asked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("backends", "dsl", "lowering"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(cache, "_PACKAGE", str(tmp_path))
    first = cache.package_stamp.__wrapped__()
    assert len(first) == 64 and first == cache.package_stamp.__wrapped__() == cache._stamp()
    assert first != cache.package_stamp()
    (tmp_path / "dsl" / "new.py").write_text("")
    assert cache.package_stamp.__wrapped__() != first


@pytest.mark.parametrize(("hours", "is_left"), [(23.9, True), (24.1, False)])
def test_files_whose_process_nobody_knows_stay_for_a_day(
    folder: Path, monkeypatch: pytest.MonkeyPatch, hours: float, is_left: bool
) -> None:
    Cache().put(KEY, ENTRY)
    left = folder / f"{KEY}.entry.1.tmp"
    left.write_text("")
    written = time.time() - hours * 3600
    os.utime(left, (written, written))
    monkeypatch.setattr(folders, "is_held", lambda _, young: young)
    Cache().put(KEY, ENTRY)
    assert left.exists() == is_left


@pytest.mark.parametrize(("free", "is_full"), [(0, True), (1023, True), (1024, False)])
def test_a_folder_is_full_where_a_compilation_may_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, is_full: bool
) -> None:
    assert not cache._is_full(str(tmp_path / "missing"))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=4096))
    assert cache._is_full(str(tmp_path)) == is_full


@pytest.mark.parametrize(
    ("platform", "names", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/own"}, "/own/plusequals"),
        ("linux", {"XDG_CACHE_HOME": "own"}, "/mine/.cache/plusequals"),
        ("linux", {}, "/mine/.cache/plusequals"),
        ("linux", {"ANDROID_DATA": "/data"}, "/elsewhere/plusequals"),
        ("darwin", {"XDG_CACHE_HOME": "/own"}, "/elsewhere/plusequals"),
    ],
)
def test_the_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, platform: str, names: dict[str, str], expected: str
) -> None:
    theirs: Any = SimpleNamespace(user_cache_dir=lambda name: f"/elsewhere/{name}")
    monkeypatch.setitem(sys.modules, "platformdirs", theirs)
    for name in ("XDG_CACHE_HOME", "ANDROID_DATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/mine", **names}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    found = cache._user_cache()
    monkeypatch.undo()
    assert found == expected
