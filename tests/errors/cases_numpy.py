"""NumPy's and Python's functions: what is refused, and arguments that do not fit."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== unknown_kw: np.ones((3,2))
def f(x):
    return x.sum(foo=1)

=== np_exp_many: np.ones((3,2))
def f(x):
    return np.exp(x, x, x)

=== np_exp_none: np.ones((3,2))
def f(x):
    return np.exp()

=== axis_str: np.ones((3,2)) => `str 'a'`
def f(x):
    return x.sum(axis="a")

=== axis_float: np.ones((3,2)) => `float 1.0`
def f(x):
    return x.sum(axis=1.0)

=== axis_out: np.ones((3,2)) => `axis 2`, `rank 2`
def f(x):
    return x.sum(axis=2)

=== axis_twice: np.ones((3,2))
def f(x):
    return x.sum(axis=(0,0))

=== axis_array: np.ones((3,2)) => `f64[3, 2]`
def f(x):
    return x.sum(axis=x)

=== negative_power: np.ones(3, np.int64)
def f(x):
    return x ** -1

=== empty_stack: np.ones(3)
def f(x):
    return np.stack([])

=== empty_max: np.ones(0) => `f64[0]`
def f(x):
    return x.max()

=== empty_argmax: np.ones(0) => `f64[0]`
def f(x):
    return x.argmax()

=== binder_kw: np.ones((3,3)), np.ones((3,3))
def f(y, e):
    y[i,j] = sum[k](e[i,k], axis=0)

=== matmul_scalar: np.ones((3,4)), 2.0 => `f64[3, 4]`
def f(y, x):
    return y @ x

=== where1: np.ones(3)
def f(y):
    return np.where(y > 0)

=== draw_random: np.ones(3)
def f(y):
    return np.random.rand(3)

=== svd: np.ones((3,3))
def f(y):
    return np.linalg.svd(y)

=== einsum_spec: np.ones((3,3)), np.ones((4,4)) => `f64[4, 4]`
def f(y, x):
    return np.einsum("ij,jk>ik", y, x)

=== einsum_rank: np.ones((3,3)), np.ones((4,4)) => `f64[3, 3]`
def f(y, x):
    return np.einsum("ijk,jk->ik", y, x)

=== zeros_neg: np.ones(3)
def f(y):
    return np.zeros(-1)

=== zeros_float: np.ones(3) => `float 1.5`
def f(y):
    return np.zeros(1.5)

=== zeros_dtype: np.ones(3) => `str 'foo'`
def f(y):
    return np.zeros(3, dtype="foo")

=== zeros_dtype_obj: np.ones(3)
def f(y):
    return np.zeros(3, dtype=object)

=== arange_zero: np.ones(3)
def f(y):
    return np.arange(0, 3, 0)

=== linspace_neg: np.ones(3)
def f(y):
    return np.linspace(0, 1, -3)

=== annot_neg: np.ones(3)
def f(y):
    z: f32[-3]
    return z

=== where_letter: np.ones((3,3)), np.ones((3,3))
def f(y, x):
    y[i, j] = np.where(x[i, j] > 0, 1)

=== any_none: np.ones(3), np.ones((3,3))
def f(y, x):
    y[i] = any()

=== star_call: np.ones(5)
def f(y):
    return np.exp(*y)

=== sum_two: np.ones(5)
def f(y):
    return sum(y, y, y)

=== len_num: 3.0
def f(y):
    return len(y)

=== int_arr: np.ones(5) => `f64[5]`
def f(y):
    return int(y)

=== float_str: np.ones(5)
def f(y):
    return float("abc") + y

=== sqrt_neg: np.ones(5)
def f(y):
    return math.sqrt(-1) + y

=== round_neg: np.ones(5, int)
def f(y):
    return np.round(y, -1)

=== sum_2d: np.ones((5,5)) => `f64[5, 5]`
def f(y):
    return sum(y)

=== min_none: np.ones((5,5))
def f(y):
    return min()

=== abs_none: np.ones((5,5))
def f(y):
    return abs()

=== abs_str: np.ones((5,5))
def f(y):
    return abs("a")

=== pow_three: np.ones((5,5)) => `int 3`
def f(y):
    return pow(y, 2, 3)

=== sorted_a: np.ones(5)
def f(y):
    return sorted(y)

=== dict_call: np.ones(5)
def f(y):
    return dict(a=1)

=== open_call: np.ones(5)
def f(y):
    return open("a")

=== np_load: np.ones(5)
def f(y):
    return np.load("a")

=== np_fft: np.ones(5)
def f(y):
    return np.fft.fft(y)

=== np_negative_at: np.ones(5)
def f(y):
    np.negative.at(y, 0)

=== np_unique: np.ones(5)
def f(y):
    return np.unique(y)

=== np_ma: np.ones(5)
def f(y):
    return np.ma.array(y)

=== np_float: np.ones(5) => `float64`
def f(y):
    return np.float64("abc") + y

=== repeat_arr: np.ones(3)
def f(y):
    return np.repeat(y, [1, 2, 3])

=== tile_bad: np.ones(3) => `float 1.5`
def f(y):
    return np.tile(y, 1.5)

=== roll_bad: np.ones(3) => `float 1.5`
def f(y):
    return np.roll(y, 1.5)

=== bincount_f: np.ones(3) => `f64[3]`
def f(y):
    return np.bincount(y)

=== searchs: np.ones((3,3))
def f(y):
    return np.searchsorted(y, 1.0)

=== det_1: np.ones(3) => `f64[3]`
def f(y):
    return np.linalg.det(y)

=== norm_bad: np.ones((3,3)) => `f64[3, 3]`
def f(y):
    return np.linalg.norm(y, 'nuc')

=== cross_bad: np.ones(5), np.ones(5) => `f64[5]`
def f(y, x):
    return np.cross(y, x)

=== trace_1: np.ones(5)
def f(y):
    return np.trace(y)

=== diag_3: np.ones((5,5,5))
def f(y):
    return np.diag(y)

=== triu_0: np.float64(5)
def f(y):
    return np.triu(y)

=== outer_none: np.ones(5)
def f(y):
    return np.outer(y)

=== mgrid_bad: np.ones(5)
def f(y):
    return np.mgrid[3]

=== meshgrid_bad: np.ones(5)
def f(y):
    return np.meshgrid(3, y, indexing="kl")

=== eye_neg: np.ones(5)
def f(y):
    return np.eye(-3)

=== astype_bad: np.ones(5) => `str 'foo'`
def f(y):
    return y.astype("foo")

=== astype_none: np.ones(5)
def f(y):
    return y.astype()

=== out_num: np.ones(5), np.ones(4) => `int 3`
def f(y, x):
    np.exp(y, out=3)

=== ufunc_where: np.ones(5)
def f(y):
    return np.exp(y, where=y > 0)

=== ufunc_reduce: np.ones((5, 5)) => `axis 7`, `rank 2`
def f(y):
    return np.add.reduce(y, axis=7)

=== select_bad: np.ones(5)
def f(y):
    return np.select([y > 0], [y, y])

=== select_empty: np.ones(5)
def f(y):
    return np.select([], [])

=== argmax_ax: np.ones(5)
def f(y):
    return np.argmax(y, axis=(0, 1))

=== static_arr_axis: np.ones(5), np.array(0) => `i64[]`
def f(y, n):
    return y.sum(axis=n)

=== matrix_power: np.eye(3), -1 => -1
def f(y, n):
    return np.linalg.matrix_power(y, n)

=== norm_axis: np.ones((3, 3, 3)) => `f64[3, 3, 3]`
def f(y):
    return np.linalg.norm(y, 3)

=== reduce_where: np.ones(3)
def f(y):
    return np.add.reduceat(y, [0, 1])

=== view_dtype: np.ones(3)
def f(y):
    return y.view(np.int64)

=== tolist: np.ones(3)
def f(y):
    return y.tolist()

=== item_many: np.ones(3) => `f64[3]`
def f(y):
    return y.item()

=== np_vectorize: np.ones(3)
def f(y):
    return np.vectorize(abs)(y)

=== time_call: np.ones(3)
import time
---
def f(y):
    return y + time.time()

=== matmul_int: 3, 4
def f(y, n):
    return y @ n

=== list_call: np.ones(3) => `f64[3]`
def f(y):
    return list(y)

=== zero_argmin: np.ones((0, 3)) => `f64[0, 3]`
def f(y):
    return y.argmin(axis=0)

=== einsum_none: np.ones(3)
def f(y):
    return np.einsum("i->")

=== einsum_out: np.ones(3)
def f(y):
    return np.einsum("i->j", y)

=== stack_num: np.ones(3)
def f(y):
    return np.stack(3.0)

=== swap_bad: np.ones(3) => `axis 1`, `rank 1`
def f(y):
    return np.swapaxes(y, 0, 1)

=== diff_bad: np.ones(3)
def f(y):
    return np.diff(y, n=-1)

=== arange_nan: np.ones(3)
def f(y):
    return np.arange(0, float("nan"), 1.0)

=== percentile: np.ones(3)
def f(y):
    return np.percentile(y, 150)

=== cov_rank: np.ones((2, 2, 2)) => `f64[2, 2, 2]`
def f(y):
    return np.cov(y)

=== reshape_float: np.ones(4) => `float 2.0`
def f(y):
    return y.reshape(2.0, 2)
"""
)
