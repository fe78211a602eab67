"""Index notation: letters, ranges, guards, reductions."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== rank_mis_letter: np.ones((3,2)), np.ones(3) => `rank 1`, `f64[2]`
def f(x, y):
    y[i] = x[i]

=== implied_sum: np.ones((3,3)), np.ones((3,3)), np.ones((3,3))
def f(c, a, b):
    c[i,j] = a[i,k] * b[k,j]

=== implied_sum_method: np.ones(3), np.ones((3,3))
def f(totals, table):
    totals[i] = np.exp(table[i, j]).sum()

=== two_letters: np.ones(3), np.ones((3,3))
def f(y, a):
    y[ii] = a[ii, 0]

=== no_slip: np.ones(3)
def f(x):
    return pandas.Series(x)

=== letter_alone: np.ones(3)
def f(x):
    x[i] = q

=== reduce_nothing: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = e[i,j] / sum(e[i,j])

=== reduce_nothing_in_guard: np.arange(9.)
def f(y):
    if max(y[i]) > 3:
        y[i] -= 1

=== letter_in_while: np.arange(9.)
def f(x):
    while x[i] > 3:
        x -= 1

=== reduce_binder_left: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = e[i,j] / sum[j](e[i,j])

=== binder_str: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = e[i,j] / sum["a"](e[i,j])

=== binder_num: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = e[i,j] / sum[0](e[i,j])

=== binder_range: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k in e](e[i,k])

=== binder_range_step: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k in range(0, 3, 2)](e[i,k])

=== binder_range_float: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k in range(1.5)](e[i,k])

=== binder_two_args: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k](e[i,k], e[i,k])

=== binder_no_args: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k]()

=== binder_slice: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[0:3](e[i,k])

=== binder_on_array: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[:] = sum[k](e)

=== std_letters: np.ones((3,3)), np.ones(3)
def f(y, e):
    y[i,j] = np.std(e[i])

=== shift_below: np.ones(3), np.ones(3) => `i = 0`, `axis 0`, `size 3`
def f(y, x):
    y[i] = x[i-1]

=== stride_above: np.ones(3), np.ones(3) => `i = 4`, `i = 2`, `axis 0`, `size 3`
def f(y, x):
    y[i] = x[2*i]

=== no_range: np.ones(3), np.ones(4)
def f(y, x):
    y[i] = i + k

=== window: np.ones(3), np.ones(5)
def f(y, x):
    y[i] = max(x[i + k])

=== gather_rank: np.ones(3), np.ones((3,3),int) => `rank 1`, `f64[3]`
def f(y, x):
    y[i] = y[x[i]]

=== captured_number_left: np.ones(3)
i = 3
---
def f(y):
    y[i] = 2

=== captured_number_right: np.ones(3), np.ones(3)
i = 3
---
def f(y, x):
    y[i] = x[i]

=== guard_letter: np.ones((3,3)), np.ones(3)
def f(y, x):
    if i > j:
        x[i] = 1

=== guard_none: np.ones((3,3)), np.ones(3)
def f(y, x):
    if i > 0:
        x[0] = 1

=== guard_loop: np.ones((3,3)), np.ones(3)
def f(y, x):
    if i > 0:
        for t in range(3):
            x[i] = 1

=== guard_ret: np.ones((3,3)), np.ones(3)
def f(y, x):
    if i > 0:
        return x

=== guard_shift: np.ones(3), np.ones(3) => `i = 2`, `axis 0`, `size 3`
def f(y, x):
    if i > 1:
        y[i] = x[i + 1]

=== guard_call: np.ones(3), np.ones(3)
def f(y, x):
    if i > 1:
        print(x[i])

=== new_array_twice_one_letter: np.ones(3)
def f(y):
    z[i, i] = y[i]
    return z

=== new_array_shifted: np.ones(3)
def f(y):
    z[i + 1] = y[i]
    return z

=== letter_without_target: np.ones(3)
def f(y):
    z = y[i]
    return z

=== two_targets: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = z[i] = x[i]

=== tuple_target: np.ones(3), np.ones(3)
def f(y, x):
    y[i], x[i] = x[i], y[i]

=== mat_aug: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[i, j] @= x[i, j]

=== mixed: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[:, j] = x[:, j]

=== nested_def_loop: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    def g(v):
        for t in range(3):
            v = v + 1
        return v
    y[i, j] = g(x[i, j])

=== nested_def_while: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    def g(v):
        while v > 0:
            v = v - 1
        return v
    y[i, j] = g(x[i, j])

=== nested_def_print: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    def g(v):
        print(v)
        return -v
    y[i, j] = g(x[i, j])

=== nested_def_assert: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    def g(v):
        assert v > 2
        return -v
    y[i, j] = g(x[i, j])

=== nested_def_raise: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    def g(v):
        if v > 2:
            raise ValueError("big")
        return -v
    y[i, j] = g(x[i, j])

=== sort_letter: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[i, j] = np.sort(x[i])[j]

=== cumsum_letter: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[i, j] = np.cumsum(x[i])[j]

=== stack_letter: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[i, j] = np.array([x[i, j], 1.0])[0]

=== inv_letter: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[i, j] = np.linalg.inv(x)[i, j]

=== slice_letter: np.ones(3), np.ones((3,3))
def f(y, x):
    y[i] = x[i, :i].sum()

=== pad_none: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = x[pad()]

=== pad_three: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = x[pad(i, 1, 2)]

=== pad_outside: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = pad(i - 1)

=== clamp_fill: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = x[clamp(i - 1, 0)]

=== ellipsis_and_letter: np.ones((3,3)) => `f64[3, 3]`
def f(y):
    y[..., i] = 1

=== neg_letter: np.ones(5), np.ones(5) => `i = 4`, `axis 0`, `size 5`
def f(y, x):
    y[i] = x[-i]

=== binder_shadow: np.ones(3), np.ones((3, 3))
def f(y, x):
    k = 2
    y[i] = sum[k](x[i, k])

=== binder_cmp: np.ones(3), np.ones((3, 3))
def f(y, x):
    y[i] = sum[i < 2](x[i, k])

=== implicit_outer: np.ones(3), np.ones((3, 3))
def f(y, x):
    y[i] += x[i, k] / sum(x[i, k])

=== target_attr: pe.tensor("p", (3,)), np.ones(3)
def f(p, y):
    p.value = y[i]

=== lambda_letter: np.ones(3), np.ones(3)
def f(y, x):
    g = lambda: x[i]
    y[i] = g()
"""
)
