"""A wheel of PyCUDA for a machine with a device: made on one that has a toolkit, and no driver.

    python -m tests.gpu.wheel --python python3.12 --into wheels [--cuda-root ROOT]

It has no wheels of its own, is not told where the toolkit is by a `nvcc` that lies elsewhere, and
links the driver's library, for which one that does nothing stands in: it has to have every function
that is named anywhere, or nobody would be told that it is needed. The wheels of what PyCUDA needs
are put beside it. There, with that Python: `pip install --no-index --find-links wheels pycuda`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

RELEASE = "2026.1"
NEEDS = ("pytools", "siphash24", "mako", "platformdirs")
"""What PyCUDA needs beside NumPy."""
TOOLS = ("setuptools", "wheel", "numpy")
CALLED = re.compile(r"\bcu[A-Z]\w*")
STAND_IN = """\
#define NONE(name) int name(void) { return 100; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuGetErrorString(int error, const char **text) { *text = "no driver"; return 0; }
int cuGetErrorName(int error, const char **text) { *text = "NO_DRIVER"; return 0; }
"""
"""Each function finds no device; but what is asked for its text has to give one."""


def names(texts: Iterable[str]) -> list[str]:
    """Return every name in texts that may be a function of the driver.

    >>> names(["CUresult cuInit(int); cuMemFree_v2(p); CUdevice d; occult cuGraph"])
    ['cuGraph', 'cuInit', 'cuMemFree_v2']
    """
    return sorted({name for text in texts for name in CALLED.findall(text)})


def stand_in(found: Iterable[str]) -> str:
    """Return the C of a driver that finds no device."""
    known = set(CALLED.findall(STAND_IN))
    return STAND_IN + "".join(f"NONE({name})\n" for name in found if name not in known)


def toolkit() -> Path | None:
    """Return the root of the toolkit, as variables or links say it; None where they do not."""
    nvcc = shutil.which("nvcc")
    said = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    said += [str(Path(nvcc).resolve().parents[1])] if nvcc else []
    found = [Path(one) for one in said if one]
    return next((one for one in found if (one / "include" / "cuda.h").is_file()), None)


def build(python: str, root: Path, into: Path, folder: Path) -> None:
    """Put the wheels into a folder; `folder` is for what is made on the way."""
    run((python, "-m", "venv", str(folder / "venv")))
    ours = str(folder / "venv" / "bin" / "python")
    pip = (ours, "-m", "pip", "--disable-pip-version-check")
    run((*pip, "install", "-q", *TOOLS))
    apart = ("--no-deps", "--no-build-isolation")
    sdist = ("--no-binary=pycuda", f"pycuda=={RELEASE}", "-d", str(folder))
    run((*pip, "download", "-q", *apart, *sdist))
    source = unpacked(folder)
    texts = [*source.glob("src/cpp/*"), *source.glob("src/wrapper/*"), root / "include" / "cuda.h"]
    library = folder / "driver"
    library.mkdir()
    code = library / "driver.c"
    code.write_text(stand_in(names(one.read_text("utf-8", "replace") for one in texts)), "ascii")
    shared = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library / "libcuda.so"))
    run((os.environ.get("CC", "cc"), "-w", *shared, str(code)))
    where = (f"--cuda-root={root}", f"--cuda-inc-dir={root / 'include'}")
    options = (f"--cudadrv-lib-dir={library}", "--no-cuda-enable-curand")
    flags = ("--cxxflags=-O2,-w,-g0", "--ldflags=-s")
    run((ours, "configure.py", *where, *options, *flags), source)
    run((*pip, "wheel", "-q", *apart, "-w", str(into), "."), source)
    run((*pip, "download", "-q", "--only-binary=:all:", "-d", str(into), *NEEDS))


def unpacked(folder: Path) -> Path:
    """Return the folder of the source that lies packed in a folder."""
    (packed,) = folder.glob("pycuda-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / packed.name.removesuffix(".tar.gz")


def run(words: Sequence[str], cwd: Path | None = None) -> None:
    """Run a command; raises CalledProcessError where it fails."""
    print("$", " ".join(words), flush=True)
    subprocess.run(words, cwd=cwd, check=True)


def main(words: Sequence[str]) -> int:
    """Return 0 where the wheels were made."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.wheel", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--python", default=sys.executable, help="the Python that they are for")
    parser.add_argument("--into", type=Path, required=True, help="the folder of the wheels")
    parser.add_argument("--cuda-root", type=Path, default=toolkit(), help="that of the toolkit")
    given = parser.parse_args(words)
    if given.cuda_root is None or not (given.cuda_root / "include" / "cuda.h").is_file():
        parser.error("there is no toolkit with include/cuda.h: name its folder by --cuda-root")
    given.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        try:
            build(given.python, given.cuda_root.resolve(), given.into.resolve(), Path(folder))
        except subprocess.CalledProcessError as why:
            print(f"it failed with status {why.returncode}: {why.cmd[0]}", file=sys.stderr)
            return 1
    for one in sorted(given.into.glob("*.whl")):
        print(f"{one.name}: {one.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
