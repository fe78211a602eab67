"""What compiled code has not written yet shows in every kind of memory."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from plusequals.backends.cc import toolchain

from . import poison

TEXT = """
void free(void *array);
double heap(void) { double *a = aligned_alloc(64, 640), b = a[79]; free(a); return b; }
double stack(int n) { double a[9]; for (int i = 0; i < n; i++) a[i] = i; return a[8]; }
"""


def test_memory_that_nothing_has_written_is_filled(tmp_path: Path) -> None:
    (tmp_path / "read.c").write_text(poison.HEAD + TEXT)
    command = toolchain.find_compiler()
    flags = poison.flags(command)
    options = ("-O2", "-w", "-shared", "-fPIC", *flags, "-o", "read.so", "read.c")
    ran = toolchain.run_command((*command, *options), tmp_path)
    assert ran.status == 0, ran.said
    library = ctypes.CDLL(str(tmp_path / "read.so"))
    library.heap.restype = library.stack.restype = ctypes.c_double
    assert np.isnan(library.heap())
    assert not flags or abs(library.stack(0)) > 1e100
    assert library.stack(9) == 8


def test_results_are_filled_before_they_are_written() -> None:
    assert np.isnan(poison.empty((2, 3))).all()
    assert (poison.empty((0,), np.dtype("i4")) == -1).all()
    assert (poison.empty((), np.dtype("i8")) == -1).all()
