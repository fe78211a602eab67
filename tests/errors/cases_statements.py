"""Statements: loops, branches, prints, declarations, comments."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== empty_range: np.ones(3)
def f(x):
    for t in range():
        x[0] = 1

=== for_tuple_unpack: np.ones((3,2))
def f(x):
    for a, b, c in x:
        x[0] = 1

=== for_target_attr: np.ones((3,2))
def f(x):
    for x.a in range(3):
        x[0] = 1

=== for_target_sub: np.ones((3,2))
def f(x):
    for x[0] in range(3):
        pass

=== break_out: np.ones(3)
def f(x):
    break

=== cont_out: np.ones(3)
def f(x):
    continue

=== unpack_arr: np.ones(3)
def f(x):
    a, b = x
    return a

=== unpack_tuple: np.ones(3)
def f(x):
    a, b = 1, 2, 3
    return a

=== raise_str: np.ones(3)
def f(y):
    raise "positive"

=== raise_bare: np.ones(3)
def f(y):
    raise

=== assign_lit: np.ones(3)
def f(y):
    3 = y

=== annot_attr: np.ones(3)
def f(y):
    y.z: f32[3]
    return y

=== captured_attribute_assigned: np.ones(3)
class A: w = property(lambda self: 1.0)
a = A()
---
def f(y):
    a.w = y

=== rank_loop: np.ones(5), 3 => `f64[5]`, `f64[1, 5]`
def f(y, n):
    z = y + 1
    for t in range(n):
        z = z[None] + 1
    return z

=== num_arr_loop: np.ones(5), 3 => `f64[5]`
def f(y, n):
    z = 0
    for t in range(n):
        if y[t] > 0:
            z = y + 1
    return z

=== arr_num_loop: np.ones(5), 3 => `int 3`
def f(y, n):
    z = y
    for t in range(n):
        z = 3
    return z

=== str_loop: np.ones(5), 3 => `str 'a'`
def f(y, n):
    z = "a"
    for t in range(n):
        z = z + "b"
    return z

=== list_loop: np.ones(5), 3
def f(y, n):
    z = []
    for t in range(n):
        z = z + [y]
    return z

=== print_arr: np.ones(5) => `f64[5]`
def f(y):
    print(y)

=== print_kw: np.ones(5)
def f(y):
    print(y[0], file=None)

=== print_fmt: np.ones(5)
def f(y):
    print(f"{y[0]:zz}")

=== comment_rt: np.ones(5)
def f(y):
    with comment(y):
        y[0] = 1

=== comment_f: np.ones(5)
def f(y):
    with comment(f"{y[0]}"):
        y[0] = 1

=== expr_stmt: np.ones(5)
def f(y):
    y + 1

=== str_stmt: np.ones(5)
def f(y):
    y[0] == 1

=== shape_set: np.ones(4) => `y.shape`
def f(y):
    y.shape = (2, 2)

=== loops_types: np.ones(3), 3 => `f64[3]`
def f(y, n):
    total = 0
    while n > 0:
        total = total + y
        n -= 1
    return total

=== sign_minus: np.ones(3), 0.1
def f(p, lr):
    p =- lr * p

=== star_sub: np.ones((3, 3)), (0, 1)
def f(y, p):
    return y[*p]

=== star_aug: np.ones((3, 3))
def f(y):
    print(*y)

=== reduce_array: np.ones(3), np.ones((3, 3)) => `f64[3]`
def f(y, x):
    y[i] = sum[k](x[k])

=== axis_loop: np.ones((6, 6)), np.array([2])
def f(y, n):
    for t in range(n[0]):
        y[0, 0] += y.sum(axis=t)[0]

=== print_none: np.ones(3)
def f(y):
    print(None, (1, 2), "a", [y])

=== loop_alias_written: np.arange(5.0) => `b`
def f(x):
    a, b = x, x * 2
    for t in range(4):
        b[1:-1] = a[:-2] + a[2:]
        y, b = b, a
    return a

=== loop_view_before: np.arange(5.0) => `a`
def f(x):
    a = x
    for t in range(3):
        a[0] = 7
        a = a + 1
    return a

=== loop_of_parts: np.arange(9.0) => `a`, `t`
def f(a):
    t = a[0:2]
    for k in range(1, 4):
        t = a[k : k + 2]
        t += 1
    return t.sum()

=== print_end_of_run: np.ones(3) => str ' '
def f(x):
    for k in range(int(x[0])):
        print(k, end=" " if k else "-")

=== loop_two_names: np.arange(5.0) => `b`
def f(u):
    a, b = u * 1, u * 2
    for t in range(3):
        b = a
        b[0] += 1
        a = a + b
    return a, b
=== for_masked: np.ones(3) => `f64`
def f(x):
    s = 0.0
    for v in x[x > 0.5]:
        s += v
    return s

=== for_masked_other: np.ones(3), np.ones(3, bool) => `f64`
def f(x, m):
    s = 0.0
    for v in x[m]:
        s += v
    return s

=== for_product: np.ones(3) => `product(range(3), range(3))`
from itertools import product
---
def f(x):
    s = 0.0
    for p, q in product(range(3), range(3)):
        s += x[p] * x[q]
    return s

=== loop_tuple_none: np.ones(3) => `a tuple of 2`, `None`
def f(x):
    for v in x:
        if v > 2:
            return v, 1.0
    return None

=== argument_none: np.ones(3) => `None`, `int 1`
def g(x):
    return x + 1
---
def f(y):
    return g(None) + y
"""
)
