"""Specifications are equal exactly where code made for one input fits another."""

from __future__ import annotations

import enum
import math
import struct
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE, CdTypeError
from plusequals.dsl.elaborate.captures.inputs import (
    ArraySpec,
    ConstantSpec,
    Inputs,
    InstanceSpec,
    MethodSpec,
    NumberSpec,
    ObjectSpec,
    TensorSpec,
)
from plusequals.dsl.specialize.signature import describe_input
from plusequals.dsl.values.builder import Context
from plusequals.dsl.values.types import WEAK_FLOAT
from plusequals.dsl.values.values import Array, Group, Handle, Opaque, Path, Scalar, Static

SLICES = st.sampled_from([slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None)])


class Odd(int):
    def __mul__(self, other: object) -> int:
        return 100


class Plain(int):
    pass


def test_what_computes_in_another_way_is_no_number_and_no_array() -> None:
    f = pe.cd_from_source("def f(k):\n    return k * 2", backend="numpy")
    assert f(Plain(3)) == 6
    for value, way in ((Odd(3), r"int\(\.\.\.\)"), (bytearray(b"ab"), r"np\.frombuffer")):
        with pytest.raises(CdTypeError, match=f"(?s)CD0701.*{way}"):
            f(value)


@st.composite
def _arrays(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.lists(st.integers(1, 3), max_size=2))
    x = np.zeros(shape, draw(st.sampled_from(["f4", "f8", "i4", "u4", "c8", "?"])))
    x = x[tuple(draw(SLICES) for _ in shape)]
    return x.T if draw(st.booleans()) else x


@given(_arrays(), _arrays())
def test_arrays_fit_the_same_code_only_where_their_layouts_agree(
    one: np.ndarray, two: np.ndarray
) -> None:
    def layout(x: np.ndarray) -> object:
        steps = tuple(step for step, size in zip(x.strides, x.shape, strict=True) if size > 1)
        return x.dtype, x.shape, steps  # nobody goes along an axis of size 1

    same = describe_input(one, False) == describe_input(two, False)
    if (one.dtype, one.shape, one.strides) == (two.dtype, two.shape, two.strides):
        assert same
    elif layout(one) != layout(two) and (
        one.size > 1 or one.dtype != two.dtype or one.shape != two.shape
    ):
        assert not same


@given(
    st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.none()),
    st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.none()),
)
def test_constants_are_compared_by_type_and_bits(one: object, two: object) -> None:
    same = describe_input(one, True) == describe_input(two, True)
    assert same == (type(one) is type(two) and bits(one) == bits(two))


def bits(value: object) -> object:
    return struct.pack("d", value) if isinstance(value, float) else repr(value)


def test_numbers_that_are_not_static_share_code() -> None:
    assert describe_input(2.5, False) == describe_input(-math.inf, False) == NumberSpec(WEAK_FLOAT)
    assert describe_input(np.float32(1), False) != describe_input(1.0, False)
    assert isinstance(describe_input(True, False), ConstantSpec), "a bool decides branches"
    assert isinstance(describe_input(2**63, False), ConstantSpec), "too large to be a number there"
    assert describe_input(0.0, True) != describe_input(-0.0, True)


def test_lists_of_numbers_are_arrays_and_tuples_are_groups() -> None:
    assert isinstance(describe_input([1.0, 2.0], False), ArraySpec)
    assert describe_input((1, 2), False) == describe_input((1, 2), False)
    assert describe_input((1, 2), False) != describe_input((1, 3), False)
    assert describe_input((1, 2), False) != describe_input([(1, 2), "a"], False)


def test_objects_are_themselves() -> None:
    one, two = object(), object()
    assert describe_input(one, False) == describe_input(one, False) == ObjectSpec(id(one), one)
    assert describe_input(one, False) != describe_input(two, False)


class _Model:
    def scale(self) -> float:
        return 2.0

    def other(self) -> float:
        return 3.0


def test_an_instance_is_known_by_its_type_a_method_by_its_function() -> None:
    model = _Model()
    assert describe_input(model, False) == describe_input(_Model(), False) == InstanceSpec(_Model)
    method = MethodSpec(types.MethodType, id(_Model.scale), _Model.scale)
    assert describe_input(model.scale, True) == describe_input(_Model().scale, True) == method
    assert describe_input(model.scale, True) != describe_input(model.other, True)


def _inputs() -> tuple[Inputs, Context]:
    return Inputs(describe_input, {}), Context("f")


def test_what_an_input_is_while_elaborating() -> None:
    inputs, ctx = _inputs()
    owner = types.SimpleNamespace(a=1)
    kinds = {
        "x": (np.zeros(3), Array), "s": (2.5, Scalar), "n": (True, Static), "np": (np, Static),
        "own": (owner, Opaque), "t": (pe.tensor("t", (2,)), Handle), "g": ((1, 2), Group),
    }  # fmt: skip
    for name, (value, kind) in kinds.items():
        assert isinstance(inputs.wrap(ctx, Path(name), value, False, NOWHERE), kind), name
    assert [node.label for node in inputs.nodes.values()] == ["x", "s"]
    assert set(inputs.used) >= {Path("x"), Path("s"), Path("own"), Path("t")}


def test_one_path_is_one_node_and_an_alias_its_owners() -> None:
    inputs, ctx = Inputs(describe_input, {Path("y"): Path("x")}), Context("f")
    x = inputs.wrap(ctx, Path("x"), np.zeros(3), False, NOWHERE)
    y = inputs.wrap(ctx, Path("y"), np.zeros(3), False, NOWHERE)
    assert isinstance(x, Array) and isinstance(y, Array) and x.view is not None
    assert y.view is not None and x.view.node == y.view.node
    assert list(ctx.parameters) == [Path("x")]


def test_fields_of_tensors_are_those_declared() -> None:
    inputs, ctx = _inputs()
    tensor = pe.tensor("p", (2, 3), dtype="float32", fields=("vel",))
    assert isinstance(describe_input(tensor, False), TensorSpec) and inputs.is_tensor(tensor)
    handle = Handle(tensor, Path("p"))
    assert inputs.field(ctx, handle, "vel", NOWHERE).kind.dtype.name == "float32"
    with pytest.raises(CdTypeError) as caught:
        inputs.field(ctx, handle, "val", NOWHERE)
    problem = caught.value.diagnostics[0]
    assert problem.code == "CD0803"
    assert [label.text for label in problem.labels] == ["declared fields: value, grad, vel"]


def test_integers_of_the_caller_are_indices_read_first() -> None:
    inputs, ctx = _inputs()
    number = inputs.wrap(ctx, Path("n"), 3, False, NOWHERE)
    assert isinstance(number, Scalar) and len(ctx.prologue) == 1
    assert list(ctx.origin.values()) == ["n"]


def test_functions_inlined_twice_have_one_root() -> None:
    inputs, _ = _inputs()
    first = inputs.root(test_objects_are_themselves, {}.get)
    assert inputs.root(test_objects_are_themselves, {}.get) == first
    assert inputs.root(_inputs, {}.get) != first


class Named:
    def __repr__(self) -> str:
        return "named"


class Level(Named, enum.IntEnum):
    ONE = 1
    TWO = 2


class Word(Named, enum.StrEnum):
    ONE = "1"
    TWO = "2"


class Text(Named, str): ...


class Raw(Named, bytes): ...


class Whole(Named, int): ...


@pytest.mark.parametrize(
    ("one", "two", "use"),
    [
        (Level.ONE, Level.TWO, lambda x, q: x * q),
        (Word.ONE, Word.TWO, lambda x, q: x if q == "1" else -x),
        (Text("1"), Text("2"), lambda x, q: x if q == "1" else -x),
        (Raw(b"1"), Raw(b"2"), lambda x, q: x * q[0]),
        (slice(Level.ONE, None), slice(Level.TWO, None), lambda x, q: x[q]),
        (slice(Whole(1), None), slice(Whole(2), None), lambda x, q: x[q]),
    ],
)
def test_values_of_classes_with_their_own_repr_are_told_apart(
    one: object, two: object, use: Callable[..., Any]
) -> None:
    @pe.cd
    def f(x: Any, q: Any) -> Any:
        return use(x, q)

    x = np.arange(3.0)
    for q in (one, one, one, two, one, two):
        assert (f(x, q) == use(x, q)).all()
