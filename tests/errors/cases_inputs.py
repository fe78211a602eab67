"""What a function is given: arguments, captured objects, tensors."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== object_array: np.array([1, "a"], object) => `int8`, `int16`, `int32`, `int64`, `uint8`
def f(y):
    return y + 1

=== text_array: np.array(["a", "b"]) => `int8`, `int16`, `int32`, `int64`, `uint8`
def f(y):
    return y + 1

=== date_array: np.array(["2020-01-01"], "datetime64[D]") => `int8`, `int16`, `int32`, `int64`
def f(y):
    return y + 1

=== record_array: np.zeros(3, [("a", float)]) => `int8`, `int16`, `int32`, `int64`, `uint8`
def f(y):
    return y["a"]

=== masked_arr: np.ma.masked_array([1.,2.], [0,1])
def f(y):
    return y + 1

=== list_arg: [1., 2.]
def f(y):
    y[0] = 3

=== ragged: [[1.], [2., 3.]]
def f(y):
    return y[0]

=== readonly: np.broadcast_to(np.ones(1), (3,))
def f(y):
    y[0] = 3

=== overlap: a[:-1], a[1:]
a = np.arange(5.)
---
def f(y, x):
    y[i] = x[i]
    x[i] = 2 * y[i]

=== self_overlap: np.lib.stride_tricks.as_strided(np.ones(5), (3,3), (8,8)) => `(3, 3)`, `(8, 8)`
def f(y):
    y[0, 0] = 3

=== tensor_undeclared_field: pe.tensor("p", (3,))
def f(p):
    p.vel = p.value

=== tensor_constant: pe.tensor("p", (3,), constant=True, init=1.0)
def f(p):
    p.value += 1

=== captured_array_written: np.ones(3)
w = np.ones(3)
---
def f(y):
    w[i] = y[i]

=== merged_array: pe.tensor("p", (3,)), np.ones(3)
def f(p, x):
    p[i] += x.merge[i]

=== merged_twice: pe.tensor("p", (3,))
def f(p):
    p[i] += p.grad.merge.merge[i]

=== merged_written: pe.tensor("p", (3,)) => `p.grad.merge`
def f(p):
    p.grad.merge[i] = p[i]

=== merged_two: pe.tensor("p", (3,)) => `p.merge`, `p.grad.merge`
def f(p):
    p[i] += p.merge[i] * p.grad.merge[i]

=== minus_tensor: pe.tensor("p", (3,)), np.ones(3)
def f(p, x):
    p.val[i] = x[i]

=== tensor_attr: pe.tensor("p", (3,))
def f(p):
    return p.gradient

=== gpu_array: type("A", (), {"__cuda_array_interface__": {}, "__array_struct__": None})()
def f(y):
    return y + 1

=== longdouble: np.ones(3, np.longdouble) => `float128`, `int8`, `int16`, `int32`, `int64`
def f(y):
    return y + 1
"""
)
