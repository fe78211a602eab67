"""What type checkers know of functions under `@cd`; `.ci/run` has mypy read this file, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import plusequals as pe
from plusequals import CdFunction, cd, f64
from plusequals.dsl.explain.explain import Explanation
from plusequals.idx import m, n

Vector = NDArray[np.float64]
X = np.arange(3.0)


@cd(backend="numpy")
def scaled(x: Vector, by: float = 2.0) -> Vector:
    return x * by


@cd
def untyped(y, x):  # type: ignore[no-untyped-def]  # what users write
    y[:] = x


@cd(backend="numpy")
def moved(y: Annotated[Vector, f64[n, m]], x: Annotated[Vector, f64[m, n]]) -> None:
    y[:] = x.T


class Net:
    """Methods of each kind."""

    rate = 0.5

    @cd(backend="numpy")
    def step(self, x: Vector, count: int) -> Vector:
        return x * (self.rate * count)

    @staticmethod
    @cd(backend="numpy")
    def double(x: Vector) -> Vector:
        return x * 2.0


def test_a_function_keeps_its_parameters_and_its_result() -> None:
    assert_type(scaled(X), Vector)
    assert_type(scaled(X, by=3.0), Vector)
    assert_type(scaled.explain(X, 3.0), Explanation)
    assert_type(scaled.compile(X), pe.Compiled)
    assert_type(scaled.on("numpy")(X), Vector)
    assert_type(untyped.explain(X, X), Explanation)
    function: Callable[[Vector, float], Vector] = scaled
    assert function(X, 2.0).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(pe.CdError, match="wrong arguments"):
        scaled()  # type: ignore[call-arg]  # has to be an error
    with pytest.raises(pe.CdError, match="wrong arguments"):
        scaled.explain(X, too="many")  # type: ignore[call-arg]  # has to be an error


def test_a_method_is_bound_to_its_object() -> None:
    net = Net()
    assert_type(net.step(X, 4), Vector)
    assert_type(net.step.explain(X, 4), Explanation)
    assert_type(net.step.compile(X, 4), pe.Compiled)
    assert_type(net.step.on("numpy")(X, 4), Vector)
    assert_type(Net.step(net, X, 4), Vector)
    assert_type(Net.double(X), Vector)
    assert net.step(X, count=4).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(pe.CdError, match="wrong arguments"):
        net.step(X)  # type: ignore[call-arg]  # has to be an error


def test_a_contract_stands_beside_the_type_for_checkers() -> None:
    y = np.zeros((3, 2))
    moved(y, np.arange(6.0).reshape(2, 3))
    assert y.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    with pytest.raises(pe.CdError, match="size `m` of `x` is not that of `y`"):
        moved(y, y)


def test_the_class_takes_parameters_and_result() -> None:
    def called(step: CdFunction[[Vector], Vector]) -> Vector:
        return assert_type(step(X), Vector)

    made = pe.cd_from_source("def f(x):\n    return x + 1.0", backend="numpy")
    assert_type(made, CdFunction[..., Any])
    assert called(made).tolist() == [1.0, 2.0, 3.0]
    assert CdFunction[[int], int] == CdFunction[[int], int]


def test_completion_shows_public_names() -> None:
    shown = {name for name in dir(pe) if not name.startswith("__")}
    assert shown == {*pe.__all__} - {"__version__"}
    t = pe.tensor("t", (2,), fields=("speed",))
    public = "constant dtype edit field fields grad label memory numpy shape speed value"
    assert [name for name in dir(t) if not name.startswith("_")] == public.split()
    public = "constant dtype edit label name numpy shape tensor"
    assert [name for name in dir(t.value) if not name.startswith("_")] == public.split()
