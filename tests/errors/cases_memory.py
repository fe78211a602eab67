"""What is asked of the memory of arrays and cannot be."""

from tests.errors.case import cases

CASES = cases(
    r"""
=== virtual_sum: np.zeros(4), np.ones((4, 4))
def f(y, x):
    t[i] = sum(x[i, j])
    memory(t, "virtual")
    y[i] = t[i] - t[3 - i]

=== virtual_in_a_loop: np.zeros(4), np.ones(4)
def f(y, x):
    t[i] = x[i] * 2
    memory(t, "virtual")
    for k in range(3):
        t[i] = t[3 - i] + 1
    y[i] = t[i]

=== virtual_printed: np.zeros(4), np.ones(4)
def f(y, x):
    t[i] = x[i] * 2
    memory(t, "virtual")
    print(t[1])
    y[i] = t[i]

=== virtual_result: np.ones(4)
def f(x):
    t[i] = x[i] * 2
    memory(t, "virtual")
    return t

=== local_on_device: np.zeros(4), np.ones(4)
def f(y, x):
    t[i] = x[i] * 2
    memory(t, "on-device")
    y[i] = t[i]

=== argument_local: np.zeros(4), np.ones(4)
def f(y, x):
    memory(x, "local")
    y[i] = x[i]

=== asked_twice: np.zeros(4), np.ones(4)
def f(y, x):
    t[i] = x[i] * 2
    memory(t, "local")
    memory(t, "virtual")
    y[i] = t[i]

=== mode_misspelt: np.zeros(4), np.ones(4) => 'locla'
def f(y, x):
    t[i] = x[i] * 2
    memory(t, "locla")
    y[i] = t[i]

=== request_of_a_number: np.zeros(4), np.ones(4) => `int 3`
def f(y, x):
    memory(3, "local")
    y[i] = x[i]

=== request_of_nothing: np.zeros(4), np.ones(4)
def f(y, x):
    memory(x)
    y[i] = x[i]

=== virtual_tensor_accumulates: np.zeros(4), np.ones(4)
t = pe.tensor("t", (4,), "float64", memory="virtual")
---
def f(y, x):
    t[i] += x[i]
    y[i] = t[i] - t[3 - i]

=== volatile_tensor_written: np.ones(4)
t = pe.tensor("t", (4,), "float64", memory="hosted volatile")
---
def f(x):
    t[i] = x[i]
"""
)
