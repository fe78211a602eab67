"""Types of operands, tests and items: what operators refuse."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== str_arg: "abc" => `str 'abc'`, `int 1`
def f(x):
    return x + 1

=== unknown_method: np.ones((3,2)) => `f64[3, 2]`
def f(x):
    return x.foo()

=== unknown_attr: np.ones((3,2)) => `f64[3, 2]`
def f(x):
    return x.foo

=== unknown_np: np.ones((3,2))
def f(x):
    return np.foo(x)

=== ordered_text: 2.5 => `str 'a'`
def f(x):
    return x < "a"

=== property_raises: 1
class Model:
    @property
    def size(self):
        raise ValueError("not fitted")
model = Model()
---
def f(x):
    return model.size

=== integer_beyond_float: np.ones(3) => `float64`, `f64[3]`
def f(x):
    return x + 10**400

=== integer_beyond_int64: np.ones(3, np.int64) => `int64`, `i64[3]`, `int 18446744073709551616`
def f(x):
    return x + 2**64

=== integer_beyond_int8: np.int8([1]) => `int8`, `i8[1]`, `int 300`
def f(x):
    return x + 300

=== for_int: np.ones(3) => `int 3`
def f(x):
    for t in 3:
        x[0] = 1

=== for_none: np.ones(3)
def f(x):
    for t in None:
        x[0] = 1

=== for_enum: np.ones((3,2))
def f(x):
    for a, b in enumerate():
        x[0] = 1

=== for_zip: np.ones((3,2))
def f(x):
    for a, b in zip():
        x[0] = 1

=== for_enum2: np.ones((3,2)) => `int 3`
def f(x):
    for a, b in enumerate(3):
        x[0] = 1

=== for_rev: np.ones((3,2))
def f(x):
    for a in reversed():
        x[0] = 1

=== while_arr: np.ones(3) => `f64[3]`
def f(x):
    while x:
        x[0] = 0

=== if_arr: np.ones(3) => `bool[3]`
def f(x):
    if x > 0:
        x[0] = 0

=== unpack_num: np.ones(3) => `int 3`
def f(x):
    a, b = 3
    return a

=== unpack_num_rt: np.ones(3) => `float64`
def f(x):
    a, b = x[0]
    return a

=== acc_bad: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k](e[i,k], acc=3)

=== assert_arr: np.ones(3) => `bool[3]`
def f(y):
    assert y > 1, "small"

=== bool_sub: np.ones(3, bool) => `bool[3]`
def f(y):
    return y - y

=== bool_neg: np.ones(3, bool) => `bool[3]`
def f(y):
    return -y

=== float_and: np.ones(3) => `float64`, `f64[3]`
def f(y):
    return y & y

=== float_shift: np.ones(3) => `float64`, `f64[3]`, `int 1`
def f(y):
    return y << 1

=== float_inv: np.ones(3) => `float64`, `f64[3]`
def f(y):
    return ~y

=== complex_lt: np.ones(3, complex) => `complex128`, `c128[3]`
def f(y):
    return y < y

=== complex_max: np.ones(3, complex)
def f(y):
    return y.max()

=== complex_floor: np.ones(3, complex) => `complex128`, `c128[3]`
def f(y):
    return np.floor(y)

=== complex_mod: np.ones(3, complex) => `complex128`, `c128[3]`, `int 2`
def f(y):
    return y % 2

=== and_arr: np.ones(3) => `f64[3]`
def f(y):
    return y and y

=== not_arr: np.ones(3) => `f64[3]`
def f(y):
    return not y

=== chain_arr: np.ones(3)
def f(y):
    return 0 < y < 1

=== in_arr: np.ones(3)
def f(y):
    return 1 in [k * y[0] for k in range(300)]

=== dict_arg_miss: {"a": np.ones(3)}
def f(y):
    return y["b"] + 1

=== annot_str: np.ones(3)
def f(y):
    z: f32["n m"]
    return y

=== annot_bad: np.ones(3)
def f(y):
    z: 3
    return y

=== annot_rank: np.ones(3) => `f32[3]`, `f64[3]`
def f(y: f32[3]):
    return y

=== captured_attribute: np.ones(3)
class A: pass
a = A()
---
def f(y):
    return y + a.w

=== captured_generator: np.ones(3)
a = (t for t in range(3))
---
def f(y):
    for t in a:
        y[0] += t

=== captured_dictionary: np.ones(3)
a = {"x": 1}
---
def f(y):
    return y + a["z"]

=== div0: np.ones(3), np.ones(3) => `int 1`, `int 0`
def f(y, x):
    y[i] = x[1 // 0]

=== print_fmt2: np.ones(5) => `int 3`, `str 'zz'`
def f(y):
    z = f"{3:zz}"

=== raise_fmt: np.ones(5)
def f(y):
    raise ValueError(f"{y[0]:zz}")

=== star_expr: np.ones(5) => `int 3`
def f(y):
    return np.exp(*3)

=== dtype_attr: np.ones(5)
def f(y):
    return y.dtype.foo

=== ufunc_unknown: np.ones((5, 5))
def f(y):
    return np.add.foo(y)

=== int_overflow_shift: np.ones(5, int) => `int64`, `i64[5]`, `int 1180591620717411303424`
def f(y):
    return y + (1 << 70)

=== lambda_star: np.ones(5) => `(0,)`, `int 3`
def f(y):
    g = lambda *a: a[3]
    return g(y)

=== own_kwargs: np.ones(5)
def f(y, **kw):
    return kw["a"]

=== own_star: np.ones(5) => `(0,)`, `int 3`
def f(*y):
    return y[3]

=== comp_num: np.ones(5) => `int 3`
def f(y):
    return [t for t in 3]

=== gen_sum: np.ones(5) => `int 5`
def f(y):
    return sum(t for t in 5)

=== bool_arg: True
def f(y):
    return y[0]

=== rank0_for: np.array(3.0) => `f64[]`
def f(y):
    for t in y:
        pass

=== acc_dtype: np.ones(3), np.ones(3)
def f(y, x):
    y[0] = sum(x[i], acc="foo")

=== rank_contract: np.ones((3, 3)) => `f64[3]`, `f64[3, 3]`
def f(y: f64[n]):
    y[0] = 1

=== dtype_contract: np.ones(3) => `i64[3]`, `f64[3]`
def f(y):
    y: i64[3]
    y[0] = 1

=== none_sub: np.ones(3)
def f(y):
    g = lambda a: a
    return g[0]

=== num_sub: np.ones(3) => `float64`
def f(y):
    return y[0][1]

=== rt_key: np.ones(3), np.array([1])
def f(y, p):
    t = (y, 2 * y)
    return t[p[0]]

=== neg_str: np.ones(3) => `str 'a'`
def f(y):
    return -"a"

=== cmp_none: np.ones(3) => `f64[3]`
def f(y):
    return y < None

=== cmp_str: np.ones(3) => `f64[3]`, `str 'a'`
def f(y):
    return y == "a"

=== tuple_times_f: np.ones(3), 2.5
def f(y, n):
    return (1, 2) * n

=== cond_none_test: np.ones(3) => `f64[3]`
def f(y):
    return 1 if y else 2

=== none_in_tuple: (None, 1) => `int 1`
def f(y):
    return y[0] + y[1]
"""
)
