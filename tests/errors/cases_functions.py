"""Names, calls, inlining and returns."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== lambda_ret: np.ones(3)
def f(x):
    return lambda a: a

=== ret_in_loop: np.ones(3)
def f(x):
    for t in range(3):
        return x[:t]

=== ret_in_while: np.ones(3)
def f(x):
    while x[0] > 0:
        if x[1] > 0:
            return x[0]
        x[0] -= x[1] + 1

=== ret_diff: np.ones(3) => `f64[3]`, `int 1`
def f(x):
    if x[0] > 0:
        return x
    else:
        return 1

=== ret_diff_rank: np.ones(3) => `f64[3]`, `float64`
def f(x):
    if x[0] > 0:
        return x + 1
    else:
        return x[0]

=== ret_diff_none: np.ones(3)
def f(x):
    if x[0] > 0:
        return x + 1

=== call_none: np.ones(3)
def f(x):
    return None(x)

=== call_int: np.ones(3) => `int 3`
def f(x):
    g = 3
    return g(x)

=== call_arr: np.ones(3) => `f64[3]`
def f(x):
    return x(1)

=== call_str: np.ones(3) => `str 'a'`
def f(x):
    return "a"(x)

=== str_join: np.ones(3)
def f(x):
    return "a".join(["b", x])

=== nested_lam: np.ones(3)
def f(x):
    g = lambda a, b: a + b
    return g(x)

=== nested_lam2: np.ones(3)
def f(x):
    g = lambda a, b: a + b
    return g(x, x, x)

=== nested_lam_kw: np.ones(3)
def f(x):
    g = lambda a, b: a + b
    return g(x, c=x)

=== unset: np.ones(3)
def f(x):
    y += 1
    return y

=== unset_letter: np.ones(3)
def f(x):
    y[i] += x[i]
    return y

=== unset_branch: np.ones(3)
def f(x):
    if x[0] > 0:
        y = x + 1
    return y

=== name_typo: np.ones(3)
def f(value):
    return valu + 1

=== letter_outside: np.ones(3)
def f(x):
    return i + 1

=== binder_bad: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = foo[k](e[i,k])

=== assign_param: np.ones(3)
def f(y):
    y = y + 1

=== append: np.ones(3)
def f(y):
    a = []
    a.append(y)
    return a

=== recursion: np.ones(3)
def f(y):
    return f(y)

=== missing_arg: np.ones(3)
def f(y, x):
    return x

=== extra_arg: np.ones(3), 3
def f(y):
    return y

=== annot_unknown: np.ones(3)
def f(y):
    z: f33[3]
    return z

=== tensor_rebound: pe.tensor("p", (3,))
def f(p):
    p = 3

=== captured_object_called: np.ones(3)
class A: pass
a = A()
---
def f(y):
    return a(y)

=== captured_list_written: np.ones(3)
a = [1., 2., 3.]
---
def f(y):
    a[0] = y[0]

=== step_rt: np.ones(4), np.array([1])
def f(y, n):
    return y.reshape(2, -1)[:, :n[0]]

=== alias_if: np.ones(5), np.ones(5)
def f(y, x):
    if y[0] > 0:
        z = y
    else:
        z = x
    z[0] = 3

=== np_pi_call: np.ones(5) => `float 3.141592653589793`
def f(y):
    return np.pi(y)

=== call_transpose: np.ones(4) => `f64[4]`
def f(y):
    return y.T()

=== method_ret: np.ones(4)
def f(y):
    return y.sum

=== def_kwargs: np.ones(5)
def f(y):
    def g(**kw):
        return kw["a"]
    return g(a=y)

=== comp_rt: np.ones(5)
def f(y):
    return [t for t in (0, 1, 2) if y[t] > 0]

=== comp_arr: np.ones(500)
def f(y):
    return sum([y[t:t + 2] for t in range(300)])

=== helper_args: np.ones(3)
g = pe.cd_from_source("def g(v, w):\n    return v\n", {}, "helper.py")
---
def f(y):
    return g(y)

=== helper_recursive: np.ones(3)
names = {}
names["g"] = g = pe.cd_from_source("def g(v):\n    return g(v)\n", names, "helper.py")
---
def f(y):
    return g(y)

=== kw_unknown: np.ones(3)
g = pe.cd_from_source("def g(v):\n    return v\n", {}, "helper.py")
---
def f(y):
    return g(y, scale=2)

=== double_letter_role: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = x[i]
    i = 3
    return i

=== getattr_call: np.ones(3)
def f(y):
    return getattr(y, "sum")()

=== map_call: np.ones(3)
def f(y):
    return map(abs, y)

=== comp_list: np.ones(300)
def f(y):
    squares = [t * t for t in y]
    return squares, squares

=== print_call_value: np.ones(3)
def f(y):
    z = print(y[0])
    return z
"""
)
