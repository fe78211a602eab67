"""`is`: decided when compiling, and refused where Python's answer is one of the run."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError
from tests.language.ask import compiled, plain, refused, run

X, Y = np.arange(1.0, 5.0), np.arange(4.0) * 10
KNOWN = (
    "x is x", "x is y", "x is not y", "x is None", "x[::-1] is x", "x + 1 is x", "None is None",
    "x.T is x.T", "x.T is x", "np.atleast_1d(x) is x", "np.atleast_2d(x) is x",
)  # fmt: skip
OPEN = {
    "a branch": "if t > 0:\n    w = x\nelse:\n    w = x * 2\nreturn w is x",
    "what may be the caller's": "if t > 0:\n    w = x\nelse:\n    w = x + y\nreturn w is not x",
    "a choice": "w = x if t > 0 else x * 2\nreturn w is x",
    "one of another": "w = x if t > 0 else y\nv = w if t > 1 else x * 2\nreturn x is v",
    "two that got one": "w = x if t > 0 else x * 2\nv = x if t > 1 else y\nreturn w is v",
    "a loop's name": "w = x\nfor k in range(3):\n    if w is x:\n        w = w + 1\nreturn w",
    "later in a loop": "w = y\nfor k in range(3):\n    if w is x: t += 1\n    w = x\nreturn t",
}

GROUPS = {
    "a branch": "s = (1.0, t)\nif t > 0:\n    w = s\nelse:\n    w = (3.0, t)\nreturn w is s",
    "a choice": "s = (1.0, t)\nw = s if t > 0 else (3.0, t)\nreturn s is not w",
    "nested": "s = (1.0, t)\nw = s if t > 0 else (3.0, t)\nv = w if t > 1 else s\nreturn v is s",
}


@pytest.mark.parametrize("body", GROUPS.values(), ids=GROUPS)
def test_a_tuple_of_one_path_only_is_refused(body: str) -> None:
    found = refused("t", body, 1.0, says=("one tuple or list on some paths",), offers=("a == b",))
    assert found.code == "CD0208"


def test_one_tuple_on_all_paths_is_that_tuple(backend: str) -> None:
    body = "s = (1.0, t)\nif t > 0:\n    w = s\nelse:\n    w = s\nreturn w is s, w is (1.0, t)"
    assert run(backend, "t", body, 1.0) == (True, False)


@pytest.mark.parametrize("test", KNOWN)
def test_what_is_known_is_pythons(test: str, backend: str) -> None:
    body = f"return {test}"
    wanted = plain("x, y, t", body, X, Y, 1.0)
    assert run(backend, "x, y, t", body, X, Y, 1.0) is wanted


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_what_the_run_decides_is_refused(body: str) -> None:
    found = refused("x, y, t", body, X, Y, 1.0, says=("on some paths",), offers=("array_equal",))
    assert found.code == "CD0208"


@pytest.mark.parametrize(
    "body",
    [
        "return a is b, b is a, a is not b, one(a, b), (a, b)[0] is b, np.asarray(a) is b",
        "return a is W, b is W, m.w is m.w, m.w is W, m.w is a, m.v is m.w",
        "t = a\na[0] += 1\nfor k in range(3):\n    t = a\nreturn t is a, t is b, a[:] is a",
    ],
)
def test_arrays_that_are_given_are_the_callers_objects(body: str) -> None:
    m, other = _Owner(), X.copy()
    m.w = m.v = X
    names: dict[str, object] = {"W": X, "m": m, "one": lambda a, b: a is b}
    f = compiled("a, b", body, **names).on("numpy")
    for a, b in ((X, X), (X, other), (X, X[:]), (other, X), (other, other), (X, X)):
        assert f(a, b) == plain("a, b", body, a, b, **names)


class _Plain:
    pass


class _Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class _Owner:
    pass


def test_objects_are_pythons(backend: str) -> None:
    body = "return m is F, m is not F, m is None"
    for mode in (*_Mode, *_Mode):
        assert run(backend, "m", body, mode, F=_Mode.FAST) == plain("m", body, mode, F=_Mode.FAST)
    f, one, other = compiled("a, b", "return a is b"), _Owner(), _Owner()
    for a, b in ((one, one), (one, other), (other, one), (other, other), (one, other), (one, f)):
        assert f(a, b) is (a is b)


class _Flag(enum.Flag):
    A, B, C = 1, 2, 4


@pytest.mark.parametrize(
    "test",
    ["1 if m & F.B else 2", "1 if m else 2", "(m | F.A) == F.A | F.B", "not m ^ F.B", "F.B in m",
     "F.A | F.C not in m", "(m & F.B) is F.B", "bool(~m & F.C)", "(m & ~F.B) == F(0)"],
)  # fmt: skip
def test_flags_are_pythons(test: str) -> None:
    names = {"F": _Flag, "F0": _Flag(0)}
    body = f"return {test}".replace("F(0)", "F0")
    f = compiled("m", body, **names)
    for mode in (_Flag.A, _Flag.B, _Flag.A | _Flag.B, _Flag(0), _Flag.B | _Flag.C, _Flag.A):
        assert f(mode) == plain("m", body, mode, **names)


def test_flags_of_a_class_that_says_what_they_mean_are_not_known() -> None:
    class Own(enum.Flag):
        A, B = 1, 2

        def __and__(self, other: object) -> Own:
            return self

    assert refused("m", "return m & F.B", Own.A, F=Own).code == "CD0402"


class _Own(enum.Enum):
    ONE = 1

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "test",
    ["m == F", "m != F", "F == m", "m in (F, None)", "m not in (F,)", "m == 1", "m == None",
     "(m, 1) == (F, t)"],
)  # fmt: skip
def test_members_of_enumerations_are_compared(test: str, backend: str) -> None:
    body = f"if {test}:\n    return x + 1\nreturn x - 1"
    for mode in _Mode:
        found = run(backend, "m, x, t", body, mode, X, 1, F=_Mode.FAST)
        assert found.tolist() == plain("m, x, t", body, mode, X, 1, F=_Mode.FAST).tolist()


def test_members_of_objects_are_looked_up_in_each_call() -> None:
    code, owner = compiled("o, x", "return x if o.mode == F else -x", F=_Mode.FAST), _Owner()
    for _ in range(2):
        for owner.mode in _Mode:
            for _ in range(3):
                assert code(owner, 2.0) == (2.0 if owner.mode is _Mode.FAST else -2.0)


def test_members_that_say_themselves_what_is_equal_are_not() -> None:
    refused("m, x", "return x if m == F else -x", _Own.ONE, X, F=_Mode.FAST)


def test_arrays_made_on_both_sides_are_neither() -> None:
    body = "if t > 0:\n    w = x + 1\nelse:\n    w = x * 2\nreturn w is x, w is not y"
    assert run("numpy", "x, y, t", body, X, Y, 1.0) == (False, True)


class _Level(enum.IntEnum):
    LOW, HIGH = 1, 2


class _Rate(float, enum.Enum):
    SLOW, FAST = 0.5, 2.5


class _Bits(enum.IntFlag):
    A, B = 1, 2


@pytest.mark.parametrize("kind", [_Level, _Rate, _Bits])
def test_members_that_are_numbers_keep_their_identity(kind: type[enum.Enum], backend: str) -> None:
    one, other = kind
    body = "return m is F, m is not F, m, m.value, m.name, x * m"
    f = compiled("m, x", body, F=one).on(backend)
    for member in (one, other, one, 1, 2.5, other):
        if not isinstance(member, enum.Enum):
            assert compiled("m", "return m is F", F=one)(member) is False
            continue
        got, want = f(member, X), plain("m, x", body, member, X, F=one)
        assert got[:5] == want[:5] and got[2] is member
        np.testing.assert_array_equal(got[5], want[5])


@pytest.mark.parametrize("kind", [int, np.float64])
def test_equal_bools_are_one(kind: type, backend: str) -> None:
    body = "w = n > 3\nreturn w is True, w is not False, w is None, (n > 5) is w"
    for n in range(8):
        assert run(backend, "n", body, kind(n)) == plain("n", body, kind(n))


@pytest.mark.parametrize(("a", "b"), [(5.5, 5.5), (np.float64(2), np.float64(2))])
def test_which_equal_numbers_are_one_is_refused(a: object, b: object) -> None:
    found = refused("a, b", "return a is b", a, b, says=("one object",), offers=("a == b",))
    assert found.code == "CD0404"
    assert run("numpy", "a, b", "return a is b, a is None", a, 2) == (False, False)


def test_tuples_that_are_given_are_the_callers_objects() -> None:
    f, one, other = compiled("a, b", "return a is b"), (X, 2), (X, 2)
    for a, b in ((one, one), (one, other), (other, one), (other, other), (one, one)):
        assert f(a, b) is (a is b)


OTHERS = (3, 1, 3.5, True, "s", None, np.int64(1), (1, 2), [1, 2])


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("mode", [_Mode.FAST, _Plain()], ids=["member", "object"])
def test_a_member_or_plain_object_equals_no_number(mode: object, other: object) -> None:
    body = "return x == m, m != x, m == m, (x == m) + 1"
    assert run("numpy", "x", body, other, m=mode) == plain("x", body, other, m=mode)


def test_a_plain_object_equals_itself_alone() -> None:
    body, one = "return a == b, a != b, a == a, b == None", _Plain()
    for other in (one, _Plain()):
        assert run("numpy", "a, b", body, one, other) == plain("a, b", body, one, other)


@pytest.mark.parametrize("test", ["x == m", "x[0] < m", "m in x"])
def test_what_has_no_answer_of_python_is_refused(test: str) -> None:
    with pytest.raises(CdTypeError, match="CD0404|CD0410"):
        run("numpy", "x", f"return {test}", X, m=_Mode.FAST)


RETURNED = (
    "x", "x[:]", "x[::1]", "x[::-1][::-1]", "x[...]", "x.T.T", "x.transpose(0, 1)", "x.real",
    "np.real(x)", "x.conj()", "np.conj(x)", "x.astype(float, copy=False)", "np.asarray(x)",
    "np.ascontiguousarray(x)", "np.atleast_2d(x)", "np.atleast_3d(x)", "x.squeeze()",
    "np.squeeze(x)", "x.reshape(x.shape)", "np.rot90(x, 0)", "np.swapaxes(x, 0, 0)",
    "np.nan_to_num(x, copy=False)", "np.array(x, copy=False)", "np.float64(x)", "x[:].ravel()",
    "np.einsum('ij->ij', x)", "np.split(x, 1)[0]", "np.add(x, 1, out=x)", "(lambda y: y)(x)",
    "np.broadcast_to(x, x.shape)", "np.diagonal(x)", "np.diag(x)", "np.diagonal(x)[1:]",
    "np.lib.stride_tricks.sliding_window_view(x, 2, axis=0)", "x.T.reshape(-1)[1:]",
)  # fmt: skip


@pytest.mark.parametrize("returned", RETURNED)
def test_a_returned_view_is_an_object_of_its_own(returned: str) -> None:
    """It is the argument itself where NumPy returns that, for static sizes and for dynamic ones."""
    text = f"def f(x):\n    return {returned}\n"
    plain: dict[str, Any] = {"np": np}
    exec(text, plain)
    f = pe.cd_from_source(text, globals={"np": np})
    test = pe.cd_from_source(f"def f(x):\n    return ({returned}) is x\n", globals={"np": np})
    for size in (3, 4, 5, 6, 7, 3):
        x = np.arange(size * 4.0).reshape(size, 4)
        found, expected = f(x), plain["f"](x)
        np.testing.assert_array_equal(found, expected)
        assert (found is x) == (expected is x) == test(x)
        assert np.shares_memory(found, x) == np.shares_memory(expected, x)
        assert found.flags.writeable == expected.flags.writeable
