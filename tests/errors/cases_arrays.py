"""Shapes, ranks, positions, masks and places: what arrays cannot be."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== float_sub: np.ones((3,3)) => `float 1.0`
def f(x):
    return x[1.0]

=== too_many_subscripts: np.ones((3,2)) => `f64[3, 2]`
def f(x):
    return x[0, 0, 0]

=== rank_over_letter: np.ones((3,2)), np.ones(3) => `f64[3, 2]`
def f(x, y):
    y[i] = x[i, j, k]

=== empty_tuple: np.ones(3) => `(3,)`, `(0,)`
def f(x):
    return x + ()

=== range_float: np.ones(3) => `float 1.5`
def f(x):
    for t in range(1.5):
        x[0] = 1

=== range_zero: np.ones(3)
def f(x):
    for t in range(0, 3, 0):
        x[0] = 1

=== size_clash: np.ones(3), np.ones(4) => `sizes 3`, `axis 0`, `size 3`, `size 4`
def f(y, x):
    y[i] = x[i]

=== size_clash_arr: np.ones(3), np.ones(4) => `(4,)`, `(3,)`, `sizes 4`
def f(y, x):
    y[:] = x

=== size_clash_add: np.ones(3), np.ones(4) => `(4,)`, `(3,)`
def f(y, x):
    return x + y

=== matmul_clash: np.ones((3,4)), np.ones((3,4)) => `(3, 4)`
def f(y, x):
    return x @ y

=== gather_float: np.ones(3), np.ones(3) => `float64`
def f(y, x):
    y[i] = y[x[i]]

=== data_slice_float: np.ones(3), np.array([1.,7]) => `float64`
def f(y, p):
    return y[p[0]:p[1]].sum()

=== assign_call: np.ones(3)
def f(y):
    np.exp(y)[:] = 3

=== assign_expr: np.ones(3)
def f(y):
    (y + 1)[:] = 3

=== assign_masked: np.ones(3), np.ones(3)
def f(y, x):
    y[y > 0] = x

=== assign_masked2: np.ones(3), np.ones(3)
def f(y, x):
    y[y > 0] = x[x > 0]

=== mask_ret: np.ones(3)
def f(y):
    return y[y > 0]

=== mask_assign_rank: np.ones(3), np.ones((3,3)) => `f64[3]`
def f(y, x):
    return y[x > 0].sum()

=== mask_size: np.ones(3), np.ones(4) => `axis 0`, `sizes 4`
def f(y, x):
    return y[x > 0].sum()

=== idx_aug: np.ones(3), np.array([0,0,1])
def f(y, x):
    y[x] += 1

=== reshape_bad: np.ones(3) => `(3,)`, `(2, 2)`
def f(y):
    return y.reshape(2, 2)

=== reshape_two: np.ones(4)
def f(y):
    return y.reshape(-1, -1)

=== transpose_bad: np.ones((3,3))
def f(y):
    return y.transpose(0, 0)

=== concat_bad: np.ones((3,3)), np.ones(3) => `f64[3, 3]`, `f64[3]`
def f(y, x):
    return np.concatenate([y, x])

=== concat_bad2: np.ones((3,3)), np.ones((4,4)) => `sizes 3`
def f(y, x):
    return np.concatenate([y, x])

=== stack_bad: np.ones((3,3)), np.ones((4,4)) => `sizes 3`
def f(y, x):
    return np.stack([y, x])

=== einsum_bad: np.ones((3,3)), np.ones((4,4)) => `(3, 3)`, `(4, 4)`
def f(y, x):
    return np.einsum("ij,jk->ik", y, x)

=== solve_bad: np.ones((3,4)), np.ones(3) => `sizes 3`
def f(y, x):
    return np.linalg.solve(y, x)

=== tensor_size: pe.tensor("p", (3,)), np.ones(4) => `sizes 3`, `axis 0`, `size 3`, `size 4`
def f(p, x):
    p[i] = x[i]

=== captured_ragged_list: np.ones(3) => `(2,)`, `(1,)`
a = [[1, 2], [3]]
---
def f(y):
    return y + a

=== nested_def_arr: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    def g(v):
        z = np.zeros(3)
        z[0] = v
        return z[0]
    y[i, j] = g(x[i, j])

=== pad_left: np.ones(3), np.ones(3) => `f64[3]`
def f(y, x):
    y[pad(i - 1)] = x[i]

=== wrap_float: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = x[wrap(i * 0.5)]

=== idx_float_letter: np.ones(3), np.ones(3)
def f(y, x):
    y[i] = x[i / 2]

=== step_zero: np.ones(3), np.ones(3)
def f(y, x):
    return x[::0]

=== two_ellipses: np.ones((3,3))
def f(y):
    return y[..., ...]

=== newaxis_many: np.ones((3,3)) => `f64[3, 3]`
def f(y):
    return y[None, None, 0, 0, 0]

=== list_idx: np.ones((3,3)) => `(2,)`, `(3,)`
def f(y):
    return y[[0, 1], [0, 1, 2]]

=== bool_idx: np.ones((3,3))
def f(y):
    return y[True]

=== bool_scalar: np.ones((3,3))
def f(y):
    return y[y[0, 0] > 0]

=== slice_assign: np.ones(5) => `(4,)`, `(2,)`, `sizes 4`
def f(y):
    y[1:3] = y[0:4]

=== slice_assign2: np.ones((5,5)), np.ones(4) => `(4,)`, `(5, 5)`, `sizes 4`
def f(y, x):
    y[:] = x

=== aug_shape: np.ones(5), np.ones((5,5)) => `(5, 5)`, `(5,)`
def f(y, x):
    y += x

=== broadcast_w: np.ones(5)
def f(y):
    z = np.broadcast_to(y, (3, 5))
    z[0, 0] = 1

=== reshape_w: np.ones((3,4)).T
def f(y):
    z = y.reshape(12)
    z[0] = 1

=== shape_loop_rt: np.ones(5), 3 => `axis 0`, `sizes 5`
def f(y, n):
    z = y + 1
    for t in range(n):
        z = z[1:] + 1
    return z

=== split_bad: np.ones(5) => `size 5`
def f(y):
    return np.split(y, 2)

=== tensordot_bad: np.ones((5,4)), np.ones((3,4)) => `(5, 4)`, `(3, 4)`
def f(y, x):
    return np.tensordot(y, x, axes=1)

=== full_bad: np.ones(5) => `(5,)`, `(2, 3)`, `sizes 5`
def f(y):
    return np.full((2, 3), y)

=== out_bad: np.ones(5), np.ones(4) => `(5,)`, `(4,)`, `sizes 5`
def f(y, x):
    np.exp(y, out=x)

=== store_tuple: np.ones(5) => `(2,)`
def f(y):
    y[0] = (1, 2)

=== cond_shape: np.ones(5), np.ones(4) => `5`, `4`
def f(y, x):
    return y if y[0] > 0 else x

=== cond_number: np.ones(5) => `f64[5]`, `float 0.0`
def f(y):
    return y if y[0] > 0 else 0.0

=== item_of_list: np.ones(5), np.ones(5) => `pair`
def f(y, x):
    pair = [y, x]
    pair[0], pair[1] = pair[1], pair[0]
    return pair[0]

=== float_idx_arg: np.ones(5), 1.5
def f(y, n):
    return y[n]

=== float_range: np.ones(5), 1.5
def f(y, n):
    for t in range(n):
        y[0] += 1

=== rank0: np.array(3.0) => `f64[]`
def f(y):
    return y[0]

=== rank0_letter: np.array(3.0) => `f64[]`
def f(y):
    y[i] = 1

=== helper: np.ones(3) => `index 7`, `axis 0`, `size 3`
g = pe.cd_from_source("def g(v):\n    return v[7]\n", {}, "helper.py")
---
def f(y):
    return g(y)

=== size_contract: np.ones(3), np.ones(4) => `sizes 4`
def f(y: f64[n], x: f64[n]):
    y[i] = x[i]

=== step_tensor: pe.tensor("p", (3,), fields=("vel",)), np.ones(4) => `(4,)`, `(3,)`, `sizes 4`
def f(p, x):
    p.vel = x

=== gradient_short: np.ones(1) => `f64[1]`
def f(y):
    return np.gradient(y)

=== argsort_mask: np.ones(3)
def f(y):
    return y[y > 0].cumsum()

=== gather_slice: np.ones((3, 3)), np.array([0, 1]) => `str 'a'`
def f(y, p):
    return y[p, "a"]

=== gather_edge: np.ones((3, 3)), np.array([0, 1])
def f(y, p):
    return y[p, clamp(5)]

=== two_masks: np.ones((3, 3))
def f(y):
    return y[y[:, 0] > 0, y[0] > 0]

=== target_call: np.ones(3) => `f64[]`
def f(y):
    np.exp(y)[i] = y[i]

=== idx_bool: np.ones(3), np.ones(3, bool)
def f(y, x):
    y[i] = y[x[i]]

=== augment_list_elem: np.ones(3), np.ones(3)
def f(y, x):
    t = [1, 2]
    t[0] += 1
    return t

=== cmp_tuple: np.ones(3) => `(3,)`, `(2,)`
def f(y):
    return y < (1, 2)

=== complex_idx: np.ones(3), 1j
def f(y, n):
    return y[n]

=== zero_reshape: np.ones((0, 3)) => `size 0`
def f(y):
    return y.reshape(-1, 0)

=== concat_scalar: np.ones(3) => `i64[]`
def f(y):
    return np.concatenate([1, 2])

=== moveaxis_bad: np.ones((3, 3))
def f(y):
    return np.moveaxis(y, (0, 1), 0)

=== squeeze_bad: np.ones((3, 3)) => `sizes 3`
def f(y):
    return np.squeeze(y, 0)

=== average_w: np.ones(3) => `(3,)`, `(4,)`
def f(y):
    return np.average(y, weights=np.ones(4))

=== broadcast_bad: np.ones(4) => `(4,)`, `(3, 3)`, `sizes 4`
def f(y):
    return np.broadcast_to(y, (3, 3))

=== matmul_stretched: np.ones((1, 4)), np.ones(1) => `(1, 4)`, `(1,)`
def f(x, y):
    return x @ y
"""
)
