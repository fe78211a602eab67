"""What all tests share: golden files, the choice of backends, and invariants that are checked.

A run ends with a line that says how many kernels of CUDA it compiled and ran; see `counted`.

`golden("name.ext")(text)` compares the whole text with `tests/golden/<path of the test>/name.ext`;
with `--update-golden` it writes the file instead. A test that takes `backend` runs once for each
`--backend` given, by default once for each in `DEFAULT_BACKENDS`.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from plusequals.base import process_state, settings
from tests.counted import COUNTED, OUTPUT

TESTS = Path(__file__).resolve().parent
DEFAULT_BACKENDS = ("numpy", "cc")
QUICK = ("dsl", "language", "lowering")
"""Folders whose programs the C compiler optimizes little: their tests are about what comes before
it, and it takes as long as all that. The others, and the hunts, run what users do by default."""

hypothesis.settings.register_profile("tests", deadline=None)  # no test asserts a time
hypothesis.settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )
    parser.addoption(
        "--backend", action="append", default=[], help="run tests on this backend (repeatable)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--backend") or DEFAULT_BACKENDS
        metafunc.parametrize("backend", chosen)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Leave garbage alone while tens of thousands of tests are made, none of which is any.

    Every other worker begins with the last folder: what one has compiled the others read.
    """
    gc.disable()
    config = session.config
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579" and config.args == ["tests"]:
        folders = (path for path in TESTS.glob("[a-z]*") if path.is_dir())
        config.args = sorted(map(str, (*folders, *TESTS.glob("test_*.py"))), reverse=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, or at the end one worker would wait for another."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, item.path))


def pytest_collection_finish() -> None:
    """Let what they are stay out of every collection of garbage, of which there are fewer, too."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    sys.dont_write_bytecode = True  # what a test writes twice within a second is read twice


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a worker of pytest-xdist send what it counted."""
    sent = getattr(session.config, "workeroutput", None)
    if sent is not None:
        sent[OUTPUT] = COUNTED.output()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker sent; one that crashed sent nothing."""
    found = getattr(node, "workeroutput", {}).get(OUTPUT)
    if found is not None:
        COUNTED.add(found)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(COUNTED.line())


@pytest.fixture(autouse=True)
def verified(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check the invariants of every stage between passes, but in tests of the settings."""
    if request.path.name == "test_settings.py":
        yield
        return
    quick = request.path.relative_to(TESTS).parts[0] in QUICK
    with settings.override(verify=True, **({"optimize": "g"} if quick else {})):
        yield


@pytest.fixture
def as_new() -> Iterator[None]:
    """The state of the process is reset before the test and after it."""
    process_state.reset()
    yield
    process_state.reset()


@pytest.fixture(scope="module")
def young() -> None:
    """Let each collection of garbage look at what is made from here on: of many each is quick."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def golden_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of golden files of the test's file."""
    return TESTS / "golden" / request.path.relative_to(TESTS).with_suffix("")


@pytest.fixture
def golden(
    request: pytest.FixtureRequest, golden_folder: Path
) -> Callable[[str], Callable[[str], None]]:
    """A function from the name of a golden file to a comparison with its whole text."""

    def of(name: str) -> Callable[[str], None]:
        path = golden_folder / name

        def compare(text: str) -> None:
            whole = text.rstrip("\n") + "\n"
            if request.config.getoption("--update-golden"):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(whole, encoding="utf-8")
                return
            assert path.exists(), f"no {path.name}: run with --update-golden, then read it"
            assert whole == path.read_text(encoding="utf-8")

        return compare

    return of
