"""Functions travel to other processes: by name where a module has them, else by value."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.state import RUNTIME

ROOT = Path(__file__).resolve().parents[3]

SENDER = """
import pickle, sys
from typing import Annotated
import numpy as np
import cloudpickle
import plusequals as pe
from plusequals import cd, f64, pad
from plusequals.idx import i as row, n

Row = f64[3]
Scale = Annotated[np.ndarray, f64[n]]
table, offset = np.arange(3.0), 3.0

def helper(v):
    return v * offset

@cd
def inner(v):
    return v + 1

@cd
def whole(x: Row, s: Scale = 2.0):
    t: f64[3]
    t[row] = x[pad(row - 1)]
    return helper(inner(x)) + np.sin(x) * s + table + t

def closure(k):
    @cd
    def scaled(x):
        return x * k
    return scaled

class Net:
    def __init__(self):
        self.__w = 5.0

    @cd
    def step(self, x):
        return x * self.__w

functions = [
    whole, closure(4), cd(lambda x: x + offset), whole.on("numpy"),
    pe.cd_from_source("def text(x):\\n    return np.cos(x) + k", {"np": np, "k": 1.5}),
]
wanted = [f(np.arange(3.0)) for f in functions]
assert all(pickle.loads(pickle.dumps(f)) is f for f in functions[:1])
with open(sys.argv[1], "wb") as file:
    for dump in (pickle.dumps, cloudpickle.dumps):
        pickle.dump(dump((functions, wanted)), file)
    pickle.dump(cloudpickle.dumps((Net().step, Net())), file)
"""

RECEIVER = """
import pickle, sys
import numpy as np
from plusequals.backends.runtime.state import RUNTIME

with open(sys.argv[1], "rb") as file:
    plain, by_cloud, net = (pickle.load(file) for _ in range(3))
x = np.arange(3.0)
made = []
for data in (plain, by_cloud, plain):
    functions, wanted = pickle.loads(data)
    assert all((f(x) == one).all() for f, one in zip(functions, wanted, strict=True))
    made.append(sum(RUNTIME.counts().values()))
    again = pickle.loads(pickle.dumps(functions))
    assert all((f(x) == one).all() for f, one in zip(again, wanted, strict=True))
step, other = pickle.loads(net)
assert step(x).tolist() == other.step(x).tolist() == [0.0, 5.0, 10.0]
print(made)
try:
    functions[0](np.ones(2))
except Exception as problem:
    print(problem)
"""


def sent(function: Any) -> Any:
    """Return what another process would get of a function."""
    return pickle.loads(pickle.dumps(function))  # noqa: S301 - our own


def test_they_go_by_value_to_processes_that_have_no_such_module(tmp_path: Path) -> None:
    known = {**os.environ, "PYTHONPATH": str(ROOT), "PLUSEQUALS_BACKEND": "numpy"}
    for name, text in (("sender.py", SENDER), ("receiver.py", RECEIVER)):
        (tmp_path / name).write_text(text)
        words = [sys.executable, str(tmp_path / name), str(tmp_path / "pickle")]
        done = subprocess.run(words, env=known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    first, error, place, *_ = done.stdout.splitlines()
    assert len({*first.strip("[]").split(", ")}) == 1, f"twins are compiled again: {first}"
    assert error.endswith("axis 0 of `x` does not have its declared size: sizes 2 and 3 differ")
    assert place.startswith(f" --> {tmp_path / 'sender.py'}:")


@cd(backend="numpy")
def here(x):
    return x + 1.0


def made(k: object) -> pe.CdFunction[[object], object]:
    @cd(backend="numpy")
    def inside(x):
        return x * k

    return inside


def test_a_module_that_has_it_gives_its_own() -> None:
    assert sent(here) is here
    assert copy.copy(made) is made and copy.deepcopy(here) is here
    other = sent(here.on("cc"))
    assert other is not here and other._backend == "cc"


def test_twins_share_what_they_are_compiled_to_unless_they_captured_something_else() -> None:
    one, same, other = (sent(made(k)) for k in (2.0, 2.0, 3.0))
    assert one.__dict__ is same.__dict__ is not other.__dict__
    before = sum(RUNTIME.counts().values())
    assert one(1.5) == same(1.5) == 3.0 and other(1.5) == 4.5
    assert sum(RUNTIME.counts().values()) == before + 2
    arrays = [sent(made(np.full(2, value))) for value in (1.0, 1.0, 2.0)]
    assert arrays[0].__dict__ is arrays[1].__dict__ is not arrays[2].__dict__
    assert arrays[2](np.ones(2)).tolist() == [2.0, 2.0]


def test_what_cannot_be_pickled_is_told_by_pickle() -> None:
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(made(x for x in ()))
