"""Tensors in files: exact, whole or not at all, and enough to go on from."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.checkpoints import load, save
from plusequals.lowering.ir import dtypes

KINDS = list(dtypes.BY_SHORT.values())


def weights(dtype: object = "float64") -> pe.Tensor:
    return pe.tensor("w", (2, 3), dtype=dtype, fields=("vel",))


@pytest.mark.parametrize("dtype", KINDS, ids=list(dtypes.BY_SHORT))
def test_every_field_comes_back_bit_by_bit(dtype: dtypes.DType, tmp_path: Path) -> None:
    one, other = weights(dtype), weights(dtype)
    bits = np.random.default_rng(3)
    for name in one.fields:
        raw = bits.integers(
            0, 2 if dtype is dtypes.bool_ else 256, one.numpy(name).nbytes, np.uint8
        )
        one.field(name)[...] = raw.view(dtype.numpy).reshape(one.shape)
    assert save(tmp_path / "a.npz", one) == tmp_path / "a.npz"
    load(tmp_path / "a.npz", other)
    for name in one.fields:
        assert one.numpy(name).tobytes() == other.numpy(name).tobytes()


def test_a_run_goes_on_from_a_file_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    text = (
        "def f(w):\n    w.vel[i, j] = w.vel[i, j] * 0.9 + w[i, j] / 3\n    w[i, j] -= w.vel[i, j]\n"
    )
    step = pe.cd_from_source(text, backend="numpy")

    def run(w: pe.Tensor, count: int) -> pe.Routine:
        routine = step.compile(w).link(pe.device("numpy").stream().context())
        for _ in range(count):
            routine()
        return routine

    whole, first, second = weights(), weights(), weights()
    whole[...] = first[...] = 1.7
    run(whole, 5)
    kept = run(first, 2)
    save(tmp_path / "a.npz", first)
    assert kept.context.stream.query(), "it waits for what was queued"
    load(tmp_path / "a.npz", second)
    run(second, 3)
    for name in ("value", "vel"):
        assert whole.numpy(name).tobytes() == second.numpy(name).tobytes()


def test_what_does_not_fit_writes_nothing(tmp_path: Path) -> None:
    w, b = weights(), pe.tensor("b", 2)
    path = save(tmp_path / "a.npz", w)
    w[...] = 5.0
    for other, says in (
        (b, "`b.value` is not in it as float32"),
        (pe.tensor("w", (3, 2), dtype="float64"), r"float64\[3, 2\].*there it is float64\[2, 3\]"),
        (pe.tensor("w", (2, 3)), "float32.*there it is float64"),
        (pe.tensor("w", (2, 3), dtype=dtypes.bfloat16), "not in it as bfloat16"),
    ):
        with pytest.raises(ValueError, match=f"CD0854(?s:.*){says}"):
            load(path, *((w, other) if other is b else (other,)))
    assert w.numpy().tolist() == [[5.0] * 3] * 2
    path.write_text("no archive")
    with pytest.raises(ValueError, match="CD0854.*holds no tensors"):
        load(path, w)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npz", w)


def test_names_are_of_one_tensor_each(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="CD0853"):
        save(tmp_path / "a.npz", weights(), weights())
    no_tensor: Any = "w"
    with pytest.raises(TypeError, match="CD0852.*given a str"):
        save(tmp_path / "a.npz", no_tensor)
    assert not list(tmp_path.iterdir())


def test_who_may_read_a_file_is_as_for_any_other(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    assert save(tmp_path / "a.npz", weights()).stat().st_mode == plain.stat().st_mode


def test_a_failed_save_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = weights()
    path = save(tmp_path / "a.npz", w)
    before = path.read_bytes()

    def full(file: object, **arrays: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        save(path, w)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_constants_are_compared(tmp_path: Path) -> None:
    one = pe.tensor("k", 2, init=1.0, constant=True)
    path = save(tmp_path / "a.npz", one)
    load(path, pe.tensor("k", 2, init=1.0, constant=True))
    with pytest.raises(TypeError, match="CD0804"):
        load(path, pe.tensor("k", 2, init=2.0, constant=True))


def test_what_is_no_archive_or_damaged_is_refused(tmp_path: Path) -> None:
    w, path = weights(), tmp_path / "a.npz"
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(ValueError, match="CD0854.*one array"):
        load(tmp_path / "one.npy", w)
    whole, before = save(path, w).read_bytes(), w.numpy().tobytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 2):
            damaged[at] = int(rng.integers(256))
        path.write_bytes(damaged[: int(rng.integers(1, 2 * len(whole)))])
        with suppress(pe.CdError):
            load(path, w)
        assert w.numpy().tobytes() == before
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.npz", w)


def test_a_zip_of_an_unknown_method_is_damaged(tmp_path: Path) -> None:
    w, path = weights(), tmp_path / "a.npz"
    data = bytearray(save(path, w).read_bytes())
    at = data.rindex(b"PK\x01\x02") + 10
    data[at] = data[data.index(b"PK\x03\x04") + 8] = 99
    for entry in range(len(data) - 4):
        if data[entry : entry + 4] == b"PK\x01\x02":
            data[entry + 10] = 99
    path.write_bytes(data)
    with pytest.raises(ValueError, match="CD0854"):
        load(path, w)


def test_no_room_for_a_copy_says_how_much_and_for_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: object, **arrays: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(MemoryError, match=r"CD0705.*the file 'a.npz', which takes [\d,]+ bytes"):
        save(tmp_path / "a.npz", weights())


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    w, path = weights(), tmp_path / "a.npz"
    save(path, w)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("nobody.npy", b"no array")
        with file.open("large.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array_header_1_0(
                entry, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
            )
    w[...] = 5.0
    load(path, w)
    assert w.numpy().tolist() == weights().numpy().tolist()


@pytest.mark.parametrize("shape", [None, (2**50,), (2, 3, 1)])
def test_a_member_that_is_another_thing_is_told(
    shape: tuple[int, ...] | None, tmp_path: Path
) -> None:
    w, path = weights(), tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as file, file.open("w.value.npy", "w") as entry:
        if shape is None:
            entry.write(b"no array")
        else:
            head = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(entry, head)
    says = "no array" if shape is None else str(list(shape))
    with pytest.raises(ValueError, match="CD0854") as caught:
        load(path, w)
    assert f"there it is {'' if shape is None else 'float64'}{says}" in str(caught.value)
