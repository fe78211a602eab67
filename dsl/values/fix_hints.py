"""Fix hints of diagnostics by error code or situation, where the error site has none of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

FILL = (
    "fill an array in a loop, and count: `found, n = np.zeros(x.size, np.int64), 0`, then "
    "`for k in range(x.size):`, `if x[k] > 0:`, `found[n] = k`, `n += 1`; `found[:n]` are they"
)
"""The alternative to a list of dynamic length."""
PICK = (
    "to have them as an array, fill one in a loop, and count: `out, n = np.zeros(x.size), 0`, then "
    "`for v in x:`, `if v > 0:`, `out[n] = v`, `n += 1`; `out[:n]` are they"
)
"""The alternative to a masked selection that is returned, or used as an array."""

WAYS_OUT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CD0141": ("write the items one by one: `f(x[0], x[1])`",),
        "CD0142": ("assign to a name, an element or a slice: `y = e`, `y[i] = e`, `y[:] = e`",),
        "CD0143": ("declare a name: `t: f32[n, m]`",),
        "CD0145": ('write `raise ValueError("what is wrong")`',),
        "CD0201": ("define or import it above the function, or pass it as an argument",),
        "CD0202": ("assign it on every path before it is read, for example `y = 0.0` at the top",),
        "CD0208": ("use another name inside the loop",),
        "CD0210": ("give the names their types before the loop: `total = np.float64(0)`",),
        "CD0301": ("cut both to one size with slices: `x[:n]`, or check what is passed",),
        "CD0302": ("add the missing axis, `x[:, None]`, or cut to one size: `x[:n]`",),
        "CD0311": ("name each axis once: `x.transpose(1, 0)` for two axes",),
        "CD0312": ("let one size follow from the others: `x.reshape(n, -1)`",),
        "CD0313": ("give them one number of axes first: `x[None, :]`, or `np.concatenate`",),
        "CD0314": ("leave the axis out: `np.gradient(x, axis=0)`, or pass more points",),
        "CD0401": ("take one element, `x[0]`, or reduce the array: `x.sum()`",),
        "CD0402": ("use numbers and arrays here: `x + 1`, `x + y`",),
        "CD0404": (
            "of complex numbers take a part first: `.real`, `.imag` or `abs(x)`",
            "of bools make integers first: `x.astype(np.int64)`",
        ),
        "CD0406": ("unpack a tuple, or an array whose size is known: `a, b = x[0], x[1]`",),
        "CD0407": ("correct these values: Python itself refuses them",),
        "CD0410": ("ask for any equal element: `np.any(x == value)`",),
        "CD0411": ("subscript an array or a tuple: `x[0]`",),
        "CD0412": ("write `x[pad(i - 1)]`, `x[clamp(i - 1)]` or `x[wrap(i - 1)]`",),
        "CD0413": ("use a number or a text written in the source",),
        "CD0414": ("the language page lists what arrays have: `.shape`, `.T`, `.sum()`, ...",),
        "CD0416": ("index every axis of what is reduced: `sum(x[i, j])`",),
        "CD0417": ('write the text itself: `with comment("step 1"):`',),
        "CD0418": ("use a local name, and return it",),
        "CD0419": ("give each value one name: `a, b, c = x`",),
        "CD0420": ("write an element type: `f32`, `f64`, `i64`, `np.float32`",),
        "CD0421": ("convert the argument, or change the declaration",),
        "CD0422": ("leave it out, or give a text: `print(x[0], end='')`",),
        "CD0424": ("write `range(n)`, `range(lo, hi)`, `enumerate(x)`, `zip(x, y)` or an array",),
        "CD0425": ("return one kind of thing on every path, or assign: `y = a if c else b`",),
        "CD0426": ("call the function of NumPy instead, or take an array's method: `np.sum(x)`",),
        "CD0427": ("call a function: `g(x)`; subscript an array: `x[0]`",),
        "CD0429": ("pass each parameter once, as the function's `def` line names them",),
        "CD0431": ("use `np.where(test, a, b)` on whole arrays",),
        "CD0432": ("give the loop a length known when compiling: `for t in range(4):`",),
        "CD0434": ("return arrays, numbers, or tuples of them",),
        "CD0436": ("call it as its `def` line says",),
        "CD0440": ("leave the argument out, or assign the result: `y[...] = ...`",),
        "CD0441": ("give an array: `out=y`",),
        "CD0442": ("correct the numbers it is given",),
        "CD0445": ("keep it at zero or more: `max(n, 0)`",),
        "CD0446": ("count axes from 0, or from the end with -1",),
        "CD0447": ("write `np.float64`, `np.int64`, `f32` or a name such as `'float32'`",),
        "CD0448": ("write one of those",),
        "CD0451": ("write to an array: `y[...] = ...`, `y[i] = ...`",),
        "CD0452": ("make an array of that many axes first: `x.reshape(n, -1)`, `x[None, :]`",),
        "CD0453": ("build it outside and pass it in",),
        "CD0454": ("use `*` or `np.einsum`, or reshape the arrays",),
        "CD0455": ("write one letter for each axis: `np.einsum('ij,jk->ik', a, b)`",),
        "CD0457": ("give the range: `np.histogram(x, bins, range=(0.0, 1.0))`",),
        "CD0458": ("convert the values: `x.ravel().astype(np.int64)`",),
        "CD0459": ("test the size before: `if x.size > 0:`, or give `initial=`",),
        "CD0460": ("test the matrix outside, or add a small multiple of `np.eye(n)`",),
        "CD0461": ("use a float, `1e30`, or a number that fits in 64 bits",),
        "CD0501": ("use integers: `x[int(n)]`, or a mask of the array's shape: `x[x > 0]`",),
        "CD0502": ("leave out an index, or add an axis: `x[:, None]`",),
        "CD0503": ("write the step as a number: `x[::2]`",),
        "CD0505": ("take it in two steps: `y = x[a]`, then `y[b]`",),
        "CD0506": ("combine the masks first: `x[mask & other]`",),
        "CD0510": ("write `sum[k](...)`, `sum[k in range(n)](...)` or `sum[k < i](...)`",),
        "CD0518": ("write the sum: `c[i, j] = sum(a[i, k] * b[k, j])`",),
        "CD0520": ("put the loop outside: `for t in range(n):` around the statement",),
        "CD0521": ("give it one expression: `y[i] = sum[k](x[i, k])`",),
        "CD0553": ("use NumPy's: `np.sum(x)`, `np.max(x)`, `x.size`",),
        "CD0574": ('name an array and a mode: `memory(t, "virtual")`',),
        "CD0601": (
            "correct the index, or say what is outside: `x[clamp(i)]`, `x[pad(i)]`, `x[wrap(i)]`",
        ),
        "two masks": ("write `np.where(mask, ..., ...)` on whole arrays",),
        "empty axis": ("an empty axis has no element to read",),
        "CD0603": ("test the size before: `if x.shape[0] > 0:`",),
    }
)
"""Error code to fix hints. Codes whose error sites always give their hints are not listed."""


def before_the_points(text: str) -> tuple[str, ...]:
    """Return fix hints for `text`, which cannot be executed per point of the iteration domain.

    >>> before_the_points("np.median(x[i])")[0]
    'call it before, for all points: `t = np.median(...)`, and index `t`'
    """
    call = re.match(r"[A-Za-z_][\w.]*(?=\()", text)
    name = "" if call is None or call[0] in ("print", "raise", "assert") else call[0]
    before = (f"call it before, for all points: `t = {name}(...)`, and index `t`",) if name else ()
    return (
        *before,
        "write the statement inside `for t in range(n):` instead of with the letter",
    )
