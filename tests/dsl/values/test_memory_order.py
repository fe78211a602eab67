"""Which results are views of which, and in which order arrays are in memory, against NumPy."""

from __future__ import annotations

import itertools
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.programs.open_sizes import open_sizes

SCOPE = {"np": np}
BACKEND = "numpy"
_MADE = (
    "{a} + 1", "{a} * {b}", "np.minimum({a}, {a})", "np.where({a} > 1, {a}, {b})", "np.copy({a})",
    "{a}.copy()", "{a}.copy(order='K')", "np.array({a})", "{a}.astype(np.float32)",
    "np.zeros_like({a})", "np.full_like({a}, 2)", "np.sort({a}, axis=0)", "np.exp({a}) - {b}",
    "np.cumsum({a}, axis=0)", "np.roll({a}, 1, axis=0)", "{a} + {a}[:1]", "{a} * np.float64(2)",
    "np.argsort({a}, axis=0)", "np.clip({a}, 0, 4)", "np.concatenate([{a}, {b}])",
    "np.stack([{a}, {b}], axis=1)", "np.add({a}, {b}, dtype=np.float64)", "np.tril({a})",
    "{a}[:, np.array([0, 1, 0])]", "{a}[np.array([1, 0])]", "np.pad({a}, 1)", "np.tile({a}, 1)",
    "np.repeat({a}, 2, axis=0)", "np.einsum('...ij,...ij->...ij', {a}, {b})",
    "np.diff({a}, axis=0)", "np.gradient({a}, axis=0)", "{a}.sum(axis=0, keepdims=True)",
    "{a} + {a}.max(axis=-1)[..., None]", "np.einsum('...ij,...kj->...ki', {a}, {b})",
    "np.sqrt(np.abs({a}))", "np.take({a}, [0, 1], axis=1)", "np.add.accumulate({a})",
    "({a} + 1j * {b})", "np.broadcast_to({a}[:1], {a}.shape) + {b}", "np.ones_like({a}) + 1",
    "np.asarray({a})", "np.ascontiguousarray({a})", "np.partition({a}, 1, axis=0)",
    "{a} @ np.swapaxes({b}, -1, -2)", "np.outer({a}, {b})", "{a}[np.array([[0, 1], [1, 0]]).T]",
    "np.take_along_axis({a}, np.argsort({b}, axis=0), 0)",
    "np.median({a}, axis=0, keepdims=True)", "np.vstack([{a}, {b}])", "np.hstack([{a}, {b}])",
    "np.nancumsum({a}, axis=0)", "np.nancumprod({a}, axis=0)", "np.unwrap({a}, axis=0)",
    "np.select([{a} > 0], [{a}])", "np.round({a}, 1)", "{a}.round(2)", "np.around({a}[::-1], -1)",
    "({a} + 1j * {b}).real", "np.imag({a} + 1j * {b})", "{a}.astype(complex).real",
    "np.nanmax({a}, axis=0, keepdims=True)", "{a} + {b}.imag", "np.clip({a}, {b}, 4)",
)  # fmt: skip
_OTHERS = (
    "np.nanmean({a}, axis=0)", "np.nanmin({a}, axis=-1)", "np.nansum({a}, axis=0)",
    "np.nanstd({a}, axis=0)", "np.count_nonzero({a}, axis=0)", "np.any({a}, axis=0)",
    "({a} > 1).all(axis=0, keepdims=True)", "np.linalg.norm({a}, 0, axis=0)",
    "np.linalg.norm({a}, 3, axis=0)", "np.argmax({a}, axis=0)", "np.average({a}, 0, {b})",
    "np.ptp({a}, axis=0)", "np.quantile({a}, [0.3, 0.5], axis=0)", "np.isclose({a}, {b})",
    "np.isin({a}, {b})", "np.angle({a} + 1j * {b})", "np.modf({a})[0]", "np.divmod({a}, 2.0)[1]",
    "np.nan_to_num({a} + 1j * {b})", "np.sinc({a})", "np.isposinf({a})",
    "np.unravel_index({a}.astype(np.int64), (5, 5))[0]", "np.select([{a} > 0], [{a}], {b})",
    "np.select([{a} > 0, {b} > 1], [{a}, 2.0], {b})", "np.interp({a}, np.ones(2), np.ones(2))",
    "np.digitize({a}, np.arange(5.0))", "np.tensordot({a}, {b}, ([0], [0]))", "np.trace({a})",
    "np.block([[{a}, {b}]])", "np.block([[{a}], [{b}]])", "({a} + 1j * {b})[[1, 0]].real",
    "np.add.outer({a}, {b})", "np.nanvar({a} + 1j * {b}, axis=0)", "{a}.round(0)", "np.fix({a})",
    "np.trapezoid({a}, axis=0)", "np.kron({a}, {b})", "np.einsum('...ij->...', {a})",
    "{a}.astype(np.int64).round(1)", "np.dstack([{a}, {b}])", "np.append({a}, {b}, axis=-1)",
)  # fmt: skip
_SEEN = (
    "{a}.T", "{a}[::2]", "{a}[:, ::2]", "{a}[..., ::-1]", "np.swapaxes({a}, 0, 1)", "{a}[None]",
    "{a}[1:]", "np.moveaxis({a}, -1, 0)", "{a}[..., 0]", "np.flip({a}, 0)", "{a}.real",
    "np.expand_dims({a}, 1)", "np.rot90({a})",
)  # fmt: skip
_FLAT = (
    "np.ravel({a})", "{a}.reshape(-1)", "{a}.ravel()", "{a}.T.ravel()", "np.ravel({a}, order='F')",
    "np.ravel({a}, order='K')", "{a}.ravel(order='A')", "{a}.T.reshape(-1)", "{a}.flatten()",
    "{a}.reshape({a}.shape[0], -1)", "{a}.reshape(-1, {a}.shape[-1])", "{a}.reshape(-1, order='F')",
    "{a}.flatten(order='K')", "np.ascontiguousarray({a})", "{a}.reshape(-1, order='A')",
)  # fmt: skip
_WRITES = ("{a} *= 2", "{a}[...] = 7", "{a}[0] = 5", "{a} += {a}")
REFUSED = {"CD0462", "CD0208", "CD0448", "CD0206"}
"""Writing what is a copy in NumPy; what could be either; an order that only the run knows."""


def layouts(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return arrays of a shape in many layouts."""
    rng = np.random.default_rng(1)
    whole = rng.permutation(int(np.prod(shape))).reshape(shape).astype(float)
    wide = np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2]
    deep = np.zeros((2 * shape[0], *shape[1:]), order="F")[::2]
    found = {"C": whole, "F": np.asfortranarray(whole), "wide": wide, "deep": deep}
    found["back"] = whole[::-1].copy()[::-1]
    for axes in itertools.permutations(range(len(shape))):
        turned = np.ascontiguousarray(whole.transpose(axes))
        found[str(axes)] = turned.transpose(np.argsort(axes))
    for name in ("wide", "deep"):
        found[name][...] = whole
    return found


def program(rng: random.Random) -> str:
    """Return the text of a function of two arrays that makes others, and writes some of them."""
    names, lines = ["a", "b"], []
    for n in range(rng.randint(1, 3)):
        pool = _MADE if rng.random() < 0.7 else _SEEN
        a, b = (rng.choice(names) for _ in "ab")
        lines.append(f"v{n} = {rng.choice(pool).format(a=a, b=b)}")
        names.append(f"v{n}")
    if rng.random() < 0.15:
        lines.append("t = a")
        lines.append("for n in range(2):")
        lines.append(f"    t = {rng.choice(('t + 1', 't * b', 'np.sort(t, axis=0)'))}")
        names.append("t")
    if rng.random() < 0.1:
        lines += ["if b.sum() > 3:", "    u = a + 1", "else:", "    u = b * 2"]
        names.append("u")
    for n in range(rng.randint(1, 2)):
        a = rng.choice(names[2:] * 3 + names)
        lines.append(f"w{n} = {rng.choice(_FLAT).format(a=a)}")
        names.append(f"w{n}")
        lines.append(rng.choice(_WRITES).format(a=rng.choice([*names[-1:] * 3, *names[2:]])))
    lines.append(f"return {', '.join(names)}")
    return "def f(a, b):\n" + "".join(f"    {x}\n" for x in lines)


def told(function: Any, a: np.ndarray, b: np.ndarray) -> Any:
    """Return what a function gives, what it leaves, and which of all that share memory; None where
    NumPy refuses."""
    a, b = _again(a), _again(b)
    with np.errstate(all="ignore"):
        found = function(a, b)
    everything = [np.asarray(one) for one in (*found, a, b)]
    shared = [np.shares_memory(x, y) for x, y in itertools.combinations(everything, 2)]
    return everything, shared


def _again(array: np.ndarray) -> np.ndarray:
    """Return a copy with the same strides."""
    back = tuple(slice(None, None, -1 if step < 0 else 1) for step in array.strides)
    ahead = array[back]
    made = np.lib.stride_tricks.as_strided(np.zeros(4 * array.size), ahead.shape, ahead.strides)
    made[...] = ahead
    return made[back]


def compare(text: str, a: np.ndarray, b: np.ndarray, shared: bool = True) -> str:
    """Return how a program compares with NumPy: "same", the code of a refusal, or "" where NumPy
    has no result; assert that it is no other."""
    scope: dict[str, Any] = dict(SCOPE)
    exec(text, scope)
    try:
        plain = told(scope["f"], a, b)
    except (ValueError, TypeError, IndexError):
        return ""
    try:
        made = told(pe.cd_from_source(text, globals=SCOPE, backend=BACKEND), a, b)
    except pe.CdError as problem:
        return problem.code
    for one, other in zip(made[0], plain[0], strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype, text
        np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=text)
    paths = any(word in text for word in ("    for ", "    if "))  # which may differ: copies
    if not paths and shared:
        assert made[1] == plain[1], f"{text}{made[1]} {plain[1]} {a.strides} {b.strides}"
    return "same"


def hunt(seed: int, count: int, shared: bool = True) -> Counter[str]:
    """Return how many random programs came to what."""
    found = Counter[str]()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        of = layouts(rng.choice(((2, 3), (3, 2), (2, 3, 4), (2, 2, 3))))
        a, b = (of[rng.choice(list(of))] for _ in "ab")
        found[compare(program(rng), a, b, shared)] += 1
    return found


def test_random_programs_share_memory_as_in_numpy() -> None:
    found = hunt(1, 150)
    assert found.keys() <= {"", "same", *REFUSED}, found
    assert found["same"] > 75, found


def test_random_programs_with_sizes_of_the_run() -> None:
    with open_sizes(True):
        found = hunt(4, 60)
    assert found.keys() <= {"", "same", "CD0435", *REFUSED}, found
    assert found["same"] > 25, found


def raveled(made: str, a: np.ndarray, b: np.ndarray) -> str:
    """Return how a program compares with NumPy that writes the elements of a new array along one
    axis: a view of it, or a copy."""
    with np.errstate(all="ignore"):
        try:
            value = eval(made, {"np": np, "a": a, "b": b})
        except (ValueError, TypeError, IndexError):
            return ""
    written = "True" if value.dtype == bool else "7"
    lines = f"v = {made}", "w = np.ravel(v)", f"w[...] = {written}", "return v, w"
    text = "def f(a, b):\n" + "".join(f"    {line}\n" for line in lines)
    scope: dict[str, Any] = dict(SCOPE)
    exec(text, scope)
    arguments = _again(a), _again(b)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = scope["f"](*arguments)
    try:
        found = pe.cd_from_source(text, globals=SCOPE, backend=BACKEND)(*arguments)
    except pe.CdError as problem:
        return problem.code
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=f"{made} {a.strides} {b.strides}")
    return "same"


@pytest.mark.parametrize(("shape", "name"), [((3, 2), "F"), ((2, 3, 4), "(0, 2, 1)"), ((2, 3), "C"),
                                             ((2, 3, 4), "F")])  # fmt: skip
def test_every_new_array_is_in_the_memory_order_of_numpy(shape: tuple[int, ...], name: str) -> None:
    of = layouts(shape)
    found = {
        made: raveled(made.format(a="a", b="b"), of[name], of["wide"]) for made in _MADE + _OTHERS
    }
    wrong = {made: how for made, how in found.items() if how not in ("", "same")}
    refused = ("np.block",) if len(shape) > 2 else ()
    assert [made for made in wrong if not made.startswith(refused)] == [], wrong
    assert Counter(found.values())["same"] > 60


def test_a_view_of_a_number_is_an_array_of_its_own() -> None:
    text = """def f(a):
    s = a.sum()
    w = np.ravel(s)
    w[0] = 7
    r = np.reshape(s, (1, 1))
    r[...] = 8
    e = np.atleast_1d(s)
    e[0] = 9
    return s, w, r, e
"""
    found = pe.cd_from_source(text, globals=SCOPE, backend=BACKEND)(np.ones(3))
    assert [float(np.asarray(one).ravel()[0]) for one in found] == [3.0, 7.0, 8.0, 9.0]


@pytest.mark.parametrize("made", ["np.minimum(a, a)", "a + 1", "np.copy(a)", "np.sort(a, axis=0)"])
def test_a_ravel_of_what_is_in_fortran_order_is_a_copy(made: str) -> None:
    text = f"def f(a):\n    v = {made}\n    w = np.ravel(v)\n    w *= w\n    return v, w\n"
    a = np.arange(1.0, 7.0).reshape(3, 2).T
    f, scope = pe.cd_from_source(text, globals=SCOPE), dict(SCOPE)
    exec(text, scope)
    for given in (a, np.ascontiguousarray(a)):
        for found, plain in zip(f(given), scope["f"](given), strict=True):  # type: ignore[operator]
            np.testing.assert_array_equal(found, plain)


def test_a_part_of_complex_numbers_has_gaps() -> None:
    text = (
        "def f(z):\n    w = np.ravel(z.real)\n    w *= 2\n    v = z.real.reshape(-1)\n    v += 1\n"
    )
    z = np.arange(6.0).reshape(2, 3) + 1j
    pe.cd_from_source(text, globals=SCOPE)(z)
    np.testing.assert_array_equal(z.real, np.arange(1.0, 7.0).reshape(2, 3))


def test_what_paths_have_in_different_orders_is_refused_where_somebody_could_tell() -> None:
    text = """def f(a, b):
    if b.sum() > 3:
        u = a + 1
    else:
        u = b * 2
    w = np.ravel(u)
    {}
    return u, w
"""
    a = np.arange(6.0).reshape(2, 3)
    given = np.asfortranarray(a), a
    _, w = pe.cd_from_source(text.format("pass"), globals=SCOPE)(*given)
    np.testing.assert_array_equal(w, np.arange(1.0, 7.0))
    with pytest.raises(pe.CdError, match="CD0208"):
        pe.cd_from_source(text.format("w[0] = 9"), globals=SCOPE)(*given)
    with pytest.raises(pe.CdError, match="depends on how the array is in memory"):
        pe.cd_from_source("def f(a, b):\n    if b.sum() > 3:\n        u = a + 1\n    else:\n"
                          "        u = b * 2\n    return np.ravel(u, order='K')\n",
                          globals=SCOPE)(*given)  # fmt: skip
