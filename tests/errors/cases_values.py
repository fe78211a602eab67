"""Values where numbers and arrays belong: texts, tuples, functions, and stores that lose."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== add_text: np.ones(3) => `str 'a'`
def f(x):
    return x + "a"

=== add_none: np.ones(3)
def f(x):
    return x + None

=== str_sub: np.ones((3,3)) => `str 'a'`
def f(x):
    return x["a"]

=== none_slice: np.ones((3,3)) => `str 'a'`
def f(x):
    return x[None:"a"]

=== add_numpy_function: np.ones(3)
def f(x):
    return x + np.exp

=== add_module: np.ones(3)
def f(x):
    return x + np

=== add_function: np.ones(3)
def f(x):
    g = lambda a: a
    return g + x

=== range_str: np.ones(3) => `str 'a'`
def f(x):
    for t in range("a"):
        x[0] = 1

=== float_to_int: np.ones(3, int), np.ones(3) => `float64`, `int64`
def f(y, x):
    y[i] = x[i]

=== complex_to_real: np.ones(3), np.ones(3, complex) => `complex128`, `float64`
def f(y, x):
    y[i] = x[i]

=== aug_div_int: np.ones(3, int) => `int64`, `float64`
def f(y):
    y /= 2

=== zeros_str: np.ones(3) => `str 'a'`
def f(y):
    return np.zeros("a")

=== huge_arg_idx: np.ones(3), 10**30 => `int64`
def f(y, n):
    return y[n]

=== captured_object_added: np.ones(3)
class A: pass
a = A()
---
def f(y):
    return y + a

=== captured_set: np.ones(3)
a = {1, 2}
---
def f(y):
    return y + a

=== pad_str: np.ones(3), np.ones(3) => `str 'a'`
def f(y, x):
    y[i] = x[pad("a")]

=== pad_fill_str: np.ones(3), np.ones(3) => `str 'a'`
def f(y, x):
    y[i] = x[pad(i - 1, "a")]

=== list_range: np.ones((3,3))
def f(y):
    return y[[0, 3]]

=== sum_attr: np.ones(4)
def f(y):
    return y.sum + 1

=== hist_bad: np.ones(3) => `str 'a'`
def f(y):
    return np.histogram(y, bins="a")

=== zeros_huge: np.ones(5)
def f(y):
    return np.zeros(10**30)

=== arange_str: np.ones(5) => `str 'a'`
def f(y):
    return np.arange("a")

=== store_str: np.ones(5) => `str 'a'`
def f(y):
    y[0] = "a"

=== store_none: np.ones(5)
def f(y):
    y[0] = None

=== store_func: np.ones(5)
def f(y):
    y[:] = np.exp

=== store_letter_str: np.ones(5) => `str 'a'`
def f(y):
    y[i] = "a"

=== store_letter_none: np.ones(5)
def f(y):
    y[i] = None

=== cond_kinds: np.ones(5) => `str 'a'`
def f(y):
    return y if y[0] > 0 else "a"

=== cond_none: np.ones(5)
def f(y):
    z = y[0] if y[0] > 0 else None
    return z

=== str_pct: np.ones(3), 2
def f(y, n):
    return "%s" % y

=== round_complex: np.ones(2) * 1j => `complex128`, `c128[2]`
def f(z):
    return np.round(z, 1)

=== half_slice: np.ones(3) => `1.5`
def f(x):
    return x[: len(x) / 2]

=== misspelled_method: np.ones(3) => `f64[3]`
def f(x):
    return x.summ()

=== matmul_str: np.ones(3) => `str 'a'`
def f(y):
    return y @ "a"

=== pow_str: np.ones(3) => `str 'a'`
def f(y):
    return y ** "a"

=== concat_str: np.ones(3) => `str 'a'`
def f(y):
    return np.concatenate(["a", y])
"""
)
