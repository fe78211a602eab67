"""What only a run can find: indices, sizes, assertions, the values of data."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== empty_max_int: np.ones(0,int)
def f(x):
    return max(x[i])

=== gather_out_of_range: np.ones(3), np.array([0,1,5]) => `index 5`, `axis 0`, `size 3`, `i = 2`
def f(y, x):
    y[i] = y[x[i]]

=== static_index_out_of_range: np.ones(3), 5 => `index 5`, `axis 0`, `size 3`
def f(y, t):
    y[t] = 1

=== static_index_negative: np.ones(3), -1 => `index -1`, `axis 0`, `size 3`
def f(y, t):
    y[t] = 1

=== weak_int_too_large: np.ones(2, "i1"), 300 => `300`, `int8`
def f(x, n):
    return x * n

=== assert_f: np.ones(3)
def f(y):
    assert y[0] > 1, "small"

=== assert_rt: np.ones(3)
def f(y):
    assert y[0] > 1, f"small {y[0]}"

=== raise_f: np.ones(3)
def f(y):
    if y[0] > 0:
        raise ValueError("positive")

=== raise_kind: np.ones(3)
def f(y):
    raise KeyError("positive")

=== raise_var: np.ones(3)
def f(y):
    raise ValueError(y[0])

=== inv_sing: np.ones((3,3))
def f(y):
    return np.linalg.inv(y)

=== chol_sing: -np.ones((3,3))
def f(y):
    return np.linalg.cholesky(y)

=== idx_sq: np.ones(3), np.ones(3) => `index 4`, `axis 0`, `size 3`, `i = 2`
def f(y, x):
    y[i] = x[i * i]

=== list_idx_out: np.ones((3,3)) => `index 7`, `axis 0`, `size 3`, `i = 1`
def f(y):
    return y[[0, 7]]

=== bincount_neg: -np.ones(3, int)
def f(y):
    return np.bincount(y, minlength=3)

=== singular_solve: np.ones((3,3)), np.ones(3)
def f(y, x):
    return np.linalg.solve(y, x)

=== gather_left_out: np.ones(3), np.array([0, 1, 9]) => `index 9`, `axis 0`, `size 3`, `n = 2`
def f(y, x):
    y[x[n]] += 1

=== loop_index_out: np.ones(3), 5 => `index 3`, `axis 0`, `size 3`
def f(y, n):
    for t in range(n):
        y[t] = 1

=== neg_size_rt: np.ones(3), np.array([-2])
def f(y, n):
    z = np.zeros(n[0])
    y[0] = z.sum()

=== empty_max_rt: np.ones(3), np.array([0])
def f(y, n):
    y[0] = y[:n[0]].max()

=== shape_rt: np.ones(3), np.array([2]) => `(3,)`, `sizes 2`
def f(y, n):
    y[:] = np.ones(n[0])

=== neg_power_rt: np.ones(3, int), np.array([1, -1, 2])
def f(y, n):
    y[:] = y ** n

=== hist_nan: np.array([1.0, np.nan])
def f(y):
    return np.histogram(y, 3)[0]

=== assert_default: np.ones(3), 2
def f(y, n):
    assert y[0] > n

=== raise_values: np.ones(3), 2
def f(y, n):
    for t in range(3):
        if y[t] > 0:
            raise IndexError(f"element {t} is {y[t]:.2f}")

=== loop_index_below: np.ones(3), np.zeros(3) => `index -1`, `axis 0`, `size 3`
def f(x, y):
    for i in range(len(x)):
        y[i] = x[i - 1]

=== power_of_two: 3 => `-3`
def f(n):
    return 2**-n

=== masked_empty_min: np.ones(3)
def f(y):
    return y[y > 5].min()

=== alias_idx: np.ones(4), np.array([3, 4]) => `index 4`, `axis 0`, `size 4`, `i = 1`
def f(y, p):
    return y[p]
"""
)
