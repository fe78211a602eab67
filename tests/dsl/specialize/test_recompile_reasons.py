"""The sentences that say why code was compiled again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.base.settings import Settings
from plusequals.dsl.elaborate.captures.inputs import (
    ArraySpec,
    ConstantSpec,
    GroupSpec,
    NumberSpec,
    ObjectSpec,
    Spec,
)
from plusequals.dsl.specialize.recompile_reasons import (
    SpecializationKey,
    describe_changes,
    path_text,
    recompile_reason,
    spec_text,
)
from plusequals.dsl.values.types import WEAK_FLOAT, WEAK_INT
from plusequals.dsl.values.values import Path
from plusequals.lowering.ir import dtypes

X = ArraySpec(dtypes.float32, (3, 4), None)
ONE, TWO = ConstantSpec(int, "1", 1), ConstantSpec(int, "2", 2)
NOW = SpecializationKey(Settings(), "cc", {"x": X}, {}, {})


@pytest.mark.parametrize(
    ("now", "before", "says"),
    [
        (X, X, []),
        (
            replace(X, swapped=True),
            X,
            ["`v` is in another machine's byte order, and was in this machine's"],
        ),
        (
            replace(X, dtype=dtypes.int8, shape=(3,)),
            X,
            ["`v` has elements of type int8, and had float32", "`v` has rank 1, and had rank 2"],
        ),
        (replace(X, shape=(3, 5)), X, ["`v` has shape (3, 5), and had (3, 4)"]),
        (
            X,
            replace(X, strides=(1, 3)),
            ["`v` lies in memory in C order, and lay with strides (1, 3) in elements"],
        ),
        (
            NumberSpec(WEAK_INT),
            NumberSpec(WEAK_FLOAT),
            ["`v` is a Python int, and was a Python float"],
        ),
        (TWO, ONE, ["`v` is 2, and was 1"]),
        (
            TWO,
            NumberSpec(WEAK_INT),
            ["`v` is 2, and its value takes part in what is compiled"],
        ),
        (
            GroupSpec("tuple", (ONE, TWO)),
            GroupSpec("tuple", (ONE, ONE)),
            ["`v[1]` is 2, and was 1"],
        ),
        (GroupSpec("list", (ONE,)), GroupSpec("tuple", (ONE,)), ["`v` is [1], and was (1)"]),
        (
            ObjectSpec(1, len),
            ObjectSpec(2, max),
            ["`v` is another builtin_function_or_method than before"],
        ),
        (ObjectSpec(1, len), ONE, ["`v` is the builtin_function_or_method `len`, and was 1"]),
    ],
)  # fmt: skip
def test_changes_of_one_input(now: Spec, before: Spec, says: list[str]) -> None:
    assert list(describe_changes("`v`", now, before)) == says


def test_the_first_call() -> None:
    assert recompile_reason(NOW, []) == "this is the first call of the function"


def test_every_kind_of_difference_is_told() -> None:
    rate, gone = Path("rate", (), True), Path("f:0:w", ("x",), True)
    before = SpecializationKey(
        Settings(debug=2), "numpy", {"x": replace(X, shape=(1, 4))}, {rate: ONE, gone: ONE},
        {Path("y"): Path("x")},
    )  # fmt: skip
    assert recompile_reason(NOW, [(before, {rate: TWO})]).split("; ") == [
        "the backend is `cc`, and was `numpy`",
        "the setting `debug` is 0, and was 2",
        "`x` has shape (3, 4), and had (1, 4)",
        "the captured `rate` is 2, and was 1",
        "the captured `w.x` is gone",
        "`x` and `y` are no longer the same array",
    ]


def test_the_nearest_is_compared_with() -> None:
    far = replace(NOW, backend="numpy", arguments={"x": ONE})
    near = replace(NOW, arguments={"x": replace(X, shape=(9, 9))})
    assert recompile_reason(NOW, [(far, {}), (near, {})]) == "`x` has shape (3, 4), and had (9, 9)"


def test_where_nothing_differs_that_is_said() -> None:
    assert recompile_reason(NOW, [(NOW, {})]) == "no code was kept for such a call"


def test_paths_and_specifications_in_words() -> None:
    assert path_text(Path("inner:3:w", ("a", 0, ("key",)), True)) == "w.a[0]['key']"
    assert spec_text(X) == "an array f32[3, 4]"
    assert (
        spec_text(replace(X, strides=(1, 3)))
        == "an array f32[3, 4] with strides (1, 3) in elements"
    )
    assert spec_text(ObjectSpec(5, object())) == "an object of type object"
