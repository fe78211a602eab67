"""Convolutions and correlations of two lines."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled

EXPRESSIONS = (
    "np.convolve(v, w)",
    "np.convolve(w, v, 'same')",
    "np.convolve(w, v, 'valid')",
    "np.convolve(v, w, 'same')",
    "np.convolve(v > 0, w > 0)",
    "np.convolve(v > 0, p > 0, 'same')",
    "np.convolve(x[0], [2, 1])",
    "np.convolve(h[0], w, 'same')",
    "np.convolve(u, k[0], 'valid')",
    "np.convolve(zf, w)",
    "np.correlate(v, w, 'full')",
    "np.correlate(zf, v[:2] * 1j, 'same')",
    "np.correlate(zf, z[0])",
    "np.correlate(p, v)[1:] * 2",
    "np.correlate(v > 0, w > 0)",
    "np.correlate((v > 0).astype(np.uint8), w > 0, 'same')",
)
MODES = ("full", "same", "valid")


def made(name: str, mode: str) -> pe.Compiled:
    """Return a function that does this with two lines."""
    text = f"def f(a, v):\n    return np.{name}(a, v, {mode!r})\n"
    return pe.cd_from_source(text, globals={"np": np})


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("body", ["np.convolve(v, p)", "np.convolve(p, v, 'same')"])
def test_nothing_is_not_convolved(body: str) -> None:
    with pytest.raises(pe.CdError, match="`convolve` of nothing") as caught:
        compiled(body, np.ones(3), np.ones(0))
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_any_two_sizes(name: str, mode: str) -> None:
    """The last sizes are those of a form for any size, whose branches are both taken."""
    function = made(name, mode).on("numpy")
    plain = getattr(np, name)
    rng = np.random.default_rng(5)
    for n, m in ((1, 1), (1, 4), (4, 2), (2, 4), (3, 3), (5, 6), (6, 5), (7, 7), (9, 2), (2, 9)):
        a, v = rng.standard_normal(n), rng.standard_normal(m)
        wanted = plain(a, v, mode)
        got = function(a, v)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12, err_msg=f"{n} and {m}")
    assert "for any size" in str(function.explain(np.ones(8), np.ones(10)).why)


CUT = """
def f(a, v, sizes):
    return np.convolve(a[:sizes[0]], v[:sizes[1]], "full")
"""


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_terms_are_added_in_the_order_of_the_first(profile: str) -> None:
    """Fixed sizes and sizes of the run give the bits of one loop over the first line."""
    rng = np.random.default_rng(6)
    numbers = [rng.integers(1, 4096, size).astype(np.float32) / 7 for size in (60, 60)]
    cut = pe.cd_from_source(CUT, globals={"np": np}).on("cc")
    for n, m in ((60, 7), (7, 60)):
        a, v = numbers[0][:n], numbers[1][:m]
        with pe.override(profile=profile):
            got = made("convolve", "full").on("cc")(a, v)
            np.testing.assert_array_equal(cut(*numbers, np.array([n, m])), got)
        if profile == "strict":
            wanted = np.zeros(n + m - 1, np.float32)
            for k in range(n):
                wanted[k : k + m] += a[k] * v
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [("convolve", (400, 31)), ("convolve", (31, 400)), ("correlate", (400, 31))],
)
def test_neighbours_are_added_up_side_by_side(name: str, mode: str, sizes: tuple[int, int]) -> None:
    loops = made(name, mode).on("cc").explain(np.ones(sizes[0]), np.ones(sizes[1])).loops
    assert "strip[column] = fma(" in str(loops) or "strip[column] += " in str(loops)


def test_at_every_point_of_letters() -> None:
    text = "def f(x, w):\n    y[i, j] = np.convolve(x[i], w, 'same')[j]\n    return y\n"
    x, w = np.arange(15.0).reshape(3, 5), np.array([1.0, 2.0, 4.0])
    got = pe.cd_from_source(text, globals={"np": np}).on("numpy")(x, w)
    np.testing.assert_array_equal(got, [np.convolve(row, w, "same") for row in x])


REFUSED = (
    ("np.convolve(v[:0], v[:0])", "CD0459", "`convolve` of nothing has no value"),
    ("np.convolve(v, v[:0], 'same')", "CD0459", "`convolve` of nothing has no value"),
    ("np.correlate(v[:0], v, 'full')", "CD0459", "`correlate` of nothing has no value"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)
