"""Errors without a place in a function: settings, backends, tensors of the host, lost sources."""

from __future__ import annotations

import sys
import tempfile
import types
from collections.abc import Callable
from unittest import mock

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.queue import Worker
from plusequals.backends.runtime.state import fork_failure
from plusequals.base import settings
from tests.errors.case import run_text
from tests.errors.on_devices import ON_DEVICES
from tests.errors.on_plans import ON_PLANS

SOURCE = "def f(y, x):\n    y[i] = y[i] // x[i]\n"


def no_text() -> object:
    """Decorate a function that was made from a string."""
    names: dict[str, object] = {}
    exec("def f(x):\n    return x + 1\n", names)
    return pe.cd(names["f"])


def not_a_function() -> object:
    """Decorate what was not written with `def`."""
    return pe.cd(len)


def text_of_two() -> object:
    """Give a text of two functions."""
    return pe.cd_from_source("def f(x):\n    pass\n\ndef g(x):\n    pass\n", name="example.py")


def unknown_backend() -> object:
    """Ask for a backend that does not exist."""
    return pe.cd_from_source(SOURCE, backend="ccc")(np.ones(3, int), np.ones(3, int))


def no_compiler() -> object:
    """Name a compiler that is not there."""
    with settings.override(compiler="/nowhere/compiler"):
        return pe.cd_from_source(SOURCE, backend="cc")(np.ones(3, int), np.ones(3, int))


def unknown_setting() -> object:
    """Change a setting that does not exist."""
    return pe.use(chekced=True)


def unknown_variable() -> object:
    """Set a variable of the environment that is no setting."""
    return settings.from_environment({"PLUSEQUALS_CHEKCED": "1"})


def unfit_setting() -> object:
    """Give a setting a value of another type."""
    return pe.use(checked="maybe")


def settings_in_a_with() -> None:
    """Enter what `use` gives, where `override` is meant."""
    with pe.use(threads=0):
        pass


def unfit_variable() -> object:
    """Give a variable of the environment a value that cannot be read."""
    return settings.from_environment({"PLUSEQUALS_CHECKED": "perhaps"})


def division_by_zero() -> object:
    """Divide integers by zero in checked mode."""
    with pe.checked():
        function = pe.cd_from_source(SOURCE, name="example.py", backend="numpy")
        return function(np.ones(3, int), np.zeros(3, int))


def division_of_floats() -> object:
    """Divide a float by zero in checked mode."""
    text = "def f(y, x):\n    y[i] = y[i] / x[i]\n"
    with pe.checked():
        return pe.cd_from_source(text, name="example.py", backend="numpy")(np.ones(3), np.zeros(3))


def birth_of_a_nan() -> object:
    """Make a NaN of numbers in checked mode."""
    text = "def f(y, x):\n    y[i] = np.sqrt(y[i] - x[i])\n"
    with pe.checked():
        function = pe.cd_from_source(text, {"np": np}, "example.py", "numpy")
        return function(np.ones(3), np.array([0.0, 2.0, 1.0]))


def overflow_on_request() -> object:
    """Add integers whose sum does not fit their type."""
    text = "def f(y, x):\n    y[i] += x[i]\n"
    with pe.checked(overflow=True):
        function = pe.cd_from_source(text, name="example.py", backend="numpy")
        return function(np.array([100], "int8"), np.array([28], "int8"))


def no_memory() -> object:
    """Ask for more memory than there is."""
    text = "def f(y):\n    return np.zeros((10**8, 10**8))\n"
    return pe.cd_from_source(text, {"np": np}, "example.py", "numpy")(np.ones(3))


def tensor_without_the_field() -> object:
    """Read a field of a tensor that was not declared."""
    return pe.tensor("p", (3,)).numpy("vel")


def constant_tensor_written() -> object:
    """Write a constant tensor from the host."""
    pe.tensor("p", (3,), init=1.0, constant=True)[...] = 2
    return None


def virtual_tensor_read() -> object:
    """Read on the host what has no array there."""
    run_text('p = pe.tensor("p", (3,), memory="virtual")\np.numpy()', {"pe": pe}, "example.py")
    return None


def too_deep() -> object:
    """Nest calls of more functions than are inlined."""
    names: dict[str, object] = {}
    for n in range(300):
        text = f"def g{n}(v):\n    return g{n + 1}(v)\n"
        names[f"g{n}"] = pe.cd_from_source(text, names, "helper.py")
    text = "def f(y):\n    return g0(y)\n"
    return pe.cd_from_source(text, names, "example.py", "numpy")(np.ones(3))


def no_such_device() -> object:
    """Ask for a device by what is no number."""
    return pe.device("numpy:first")


def no_array_in_the_context() -> object:
    """Copy to the host what no routine of the context uses."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    return stream.context().to_host(p)


def written_by_two_streams() -> object:
    """Write on two streams what they share."""
    p, q = pe.tensor("p", (3,)), pe.tensor("q", (3,))
    reads = pe.cd_from_source("def reads(q, p):\n    q[i] = p[i]\n").compile(q, p)
    writes = pe.cd_from_source("def writes(p):\n    p[i] = 1.0\n").compile(p)
    streams = _streams("numpy:0/s0", "numpy:0/s1", "numpy:0/s2")
    reads.link(streams[0].context())
    writes.link(streams[1].context())
    return writes.link(streams[2].context())


def merged_without_a_source() -> object:
    """Call a routine that merges before its merge buffer is filled."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    merge = pe.cd_from_source("def merge(p):\n    p.grad += p.grad.merge\n", name="example.py")
    return merge.compile(p).link(stream.context())()


def finalized_context() -> object:
    """Use a context after it was finalized."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    with stream.context() as context:
        context.from_host(p)
    return context.numpy(p)


def unknown_way_to_merge() -> object:
    """Merge in a way that there is not."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    merge = pe.cd_from_source("def merge(p):\n    p.grad += p.grad.merge\n").compile(p)
    routine = merge.link(stream.context())
    return routine.context.merge_into(routine, p.grad, mode="moving")


def linked_into_a_stream() -> object:
    """Link into a stream, which has no arrays."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    return pe.cd_from_source("def f(p):\n    p[i] = 1.0\n").compile(p).link(stream)


def nowhere_to_run() -> object:
    """Split batches over no streams."""
    step = pe.cd_from_source("def step(x):\n    x[i] = 1.0\n")
    return pe.DataParallel(step, step, [], ())


def a_batch_of_two_sizes() -> object:
    """Give a step arrays with different numbers of rows."""
    step = pe.cd_from_source("def step(x, y):\n    x[i] = y[i]\n")
    train = pe.DataParallel(step, step, _streams("numpy:0/s0"), ())
    return train(np.ones(3), np.ones(4))


def nothing_to_draw_with() -> object:
    """Draw a timeline where matplotlib is not installed."""
    with mock.patch.dict(sys.modules, {"matplotlib.figure": None}):
        return pe.Timeline().save_picture("timeline.png")


def bound_to_no_name() -> object:
    """Give a routine a value by a name that it does not take."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    step = pe.cd_from_source("def step(p, x, rate):\n    p[i] = rate * x[i]\n")
    routine = step.compile(p, np.ones(3), 0.5).link(stream.context())
    routine.bindings["rates"] = 0.25
    return routine


def called_before_what_it_needs() -> object:
    """Call a routine before the one that computes what it reads."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    step = pe.cd_from_source("def step(p):\n    p.grad[i] = p[i]\n").compile(p)
    update = pe.cd_from_source("def update(p):\n    p[i] -= p.grad[i]\n", name="example.py")
    routine = step.link(stream.context())
    return update.compile(p).link(routine.context)()


def read_after_it_was_let_go() -> object:
    """Read in one routine what another one computed of a tensor that is local."""
    y, (stream,) = pe.tensor("y", (3,)), _streams("numpy:0/s0")
    t = pe.tensor("t", (3,), memory="local")
    first = pe.cd_from_source("def first(t, y):\n    t[i] = y[i]\n    y[i] = t[2 - i]\n")
    second = pe.cd_from_source("def second(y, t):\n    y[i] += t[i]\n", name="example.py")
    routine = first.compile(t, y).link(stream.context())
    return second.compile(y, t).link(routine.context)


def inlined_from_what_does_not_compute_it() -> object:
    """Take a virtual tensor from a function that only reads it."""
    y, t = pe.tensor("y", (3,)), pe.tensor("t", (3,), memory="virtual")
    second = pe.cd_from_source("def second(y, t):\n    y[i] += t[i]\n", name="example.py")
    code = second.compile(y, t)
    return second.compile(y, t, inline={t: code})


def inlined_although_it_needs_what_a_call_gives() -> object:
    """Compute a virtual tensor again that is computed of an array of a call."""
    y, t, x = pe.tensor("y", (3,)), pe.tensor("t", (3,), memory="virtual"), np.ones(3)
    text = "def first(y, t, x):\n    t[i] = x[i] * 2.0\n    y[i] = t[i]\n"
    code = pe.cd_from_source(text, name="example.py").compile(y, t, x)
    second = pe.cd_from_source("def second(y, t):\n    y[i] += t[i]\n")
    return second.compile(y, t, inline={t: code})


def inlined_from_what_is_not_linked() -> object:
    """Link what computes a virtual tensor again without what computes it."""
    y, a, (stream,) = pe.tensor("y", (3,)), pe.tensor("a", (3,)), _streams("numpy:0/s0")
    t = pe.tensor("t", (3,), memory="virtual")
    first = pe.cd_from_source("def first(y, t, a):\n    t[i] = a[i]\n    y[i] = t[i]\n")
    second = pe.cd_from_source("def second(y, t):\n    y[i] += t[i]\n", name="example.py")
    code = first.compile(y, t, a)
    return second.compile(y, t, inline={t: code}).link(stream.context())


def inlined_of_another_version() -> object:
    """Compute a virtual tensor again when what it is computed of has changed."""
    y, a, (stream,) = pe.tensor("y", (3,)), pe.tensor("a", (3,)), _streams("numpy:0/s0")
    t = pe.tensor("t", (3,), memory="virtual")
    first = pe.cd_from_source("def first(y, t, a):\n    t[i] = a[i]\n    y[i] = t[i]\n")
    second = pe.cd_from_source("def second(y, t):\n    y[i] += t[i]\n", name="example.py")
    code = first.compile(y, t, a)
    routine = code.link(stream.context())
    again = second.compile(y, t, inline={t: code}).link(routine.context)
    routine()
    a[...] = 5.0
    return again()


def field_of_a_taken_name() -> object:
    """Declare a field by a name that has a meaning."""
    return pe.tensor("p", (3,), fields=("velocity", "merge"))


def array_of_a_tensor_itself() -> object:
    """Ask for the array of a tensor, and for no copy."""
    return np.asarray(pe.tensor("p", (3,)), copy=False)


def copied_from_no_context() -> object:
    """Copy a field from a routine, which is no context."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    routine = pe.cd_from_source("def f(p):\n    p[i] = 1.0\n").compile(p).link(stream.context())
    return stream.context().copy_from(routine, p)


def opened_in_no_mode() -> object:
    """Open the array of a context in a mode of files."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    context = stream.context()
    context.from_host(p)
    with context.device_pointer(p, "r+") as a:
        return a


def read_while_the_thread_itself_writes() -> object:
    """Read a tensor in the `with` that writes it."""
    p, (stream,) = pe.tensor("p", (3,)), _streams("numpy:0/s0")
    context = stream.context()
    context.from_host(p)
    with context.device_pointer(p, "w"):
        return p.numpy()


def saved_under_one_name() -> object:
    """Save two tensors that have one label."""
    return pe.save("run.npz", pe.tensor("w", (3,)), pe.tensor("w", (4,)))


def loaded_from_another_file() -> object:
    """Load a tensor from a file of other tensors."""
    with tempfile.TemporaryDirectory() as folder:
        path = pe.save(f"{folder}/run.npz", pe.tensor("w", (3,)))
        return pe.load(path, pe.tensor("w", (4,)), pe.tensor("b", ()))


def traced_where_it_is_no_test() -> object:
    """Trace where something holds that is no test of indices."""
    with pe.trace(where="x[i] > 0") as trace:
        return trace


def a_trace_of_no_element() -> object:
    """Take every zeroth element."""
    with pe.trace(sample=0) as trace:
        return trace


def tensor_of_a_negative_size() -> object:
    """Give a tensor a size below zero."""
    return pe.tensor("t", (3, -1))


def asked_of_what_nothing_writes() -> object:
    """Ask a trace why an element is what it is that no statement wrote."""
    with pe.trace() as trace:
        pe.cd_from_source("def f(y, x):\n    y[i] = x[i]\n")(np.ones(3), np.ones(3))
    return trace.why("x", 1)


def asked_with_too_few_indices() -> object:
    """Ask a trace about a row where it knows elements."""
    with pe.trace() as trace:
        pe.cd_from_source("def f(y, x):\n    y[i, j] = x[i, j]\n")(np.ones((3, 2)), np.ones((3, 2)))
    return trace.why("y", 1)


def traces_of_other_functions() -> object:
    """Compare traces that have no statement in common."""
    taken = []
    for text in ("y[i] = x[i]", "y[i] = x[i] * 2"):
        f = pe.cd_from_source(f"def f(y, x):\n    {text}\n")
        with pe.trace() as trace:
            f(np.ones(3), np.ones(3))
        taken.append(trace)
    return taken[0].diff(taken[1])


def work_left_to_a_forked_child() -> object:
    """Wait, in a forked child, for what the parent had queued."""
    worker = Worker("numpy:0/s0", threaded=False)
    worker.submit(int, ())
    worker.after_fork(fork_failure())
    return worker.synchronize()


def exchanged_each_time_it_is_looked_at() -> object:
    """Give an object whose array is another one whenever somebody asks for it."""
    sizes = iter(range(100))
    new = type("New", (), {"values": property(lambda self: np.ones(next(sizes)))})
    return pe.cd_from_source("def f(x):\n    return x.values + 1\n")(new())


def called_while_the_interpreter_ends() -> object:
    """Call from a finalizer, when Python's own modules are gone, what is not compiled."""
    f = pe.cd_from_source("def f(y):\n    y[i] = 1.0\n")
    with mock.patch.object(sys, "meta_path", None), mock.patch.object(f, "_find_match", None):
        return f(np.ones(3))


def gradient_of_a_complex_sign() -> object:
    """Ask for a derivative that there is no rule for."""
    f = pe.cd_from_source("def f(x):\n    return np.sign(x * 1j).real.sum()\n", {"np": np})
    return pe.gradient(f, wrt="x")(np.ones(3))


def gradient_without_a_source() -> object:
    """Ask for the source of a gradient before it was called."""
    f = pe.cd_from_source("def f(x):\n    return (x * x).sum()\n")
    return pe.gradient(f, wrt="x").source


def gradient_with_nonsense_for_memory() -> object:
    """Ask for less than one state of a loop."""
    f = pe.cd_from_source("def f(x):\n    return (x * x).sum()\n")
    return pe.gradient(f, wrt="x", memory=0)


def gradient_that_differences_do_not_confirm() -> object:
    """Demand digits of a derivative at a kink."""
    f = pe.cd_from_source("def f(x):\n    return np.maximum(x, 0.0).sum()\n", {"np": np})
    return pe.check_gradient(f, (np.array([2.0, 0.0]),), wrt="x", digits=6)


def derivative_rule_of_another_function() -> object:
    """Give a function a derivative with a parameter that it has no value for."""
    f = pe.cd_from_source("def f(x):\n    y = x * x\n    return y\n")
    return f.vjp_rule(pe.cd_from_source("def f_vjp(x, d_z):\n    return 2 * x * d_z\n"))


def framework_that_is_not_installed() -> object:
    """Ask for a function of a framework that is not there."""
    f = pe.cd_from_source("def f(x):\n    return x * 2\n")
    with mock.patch.dict(sys.modules, {"torch": None}):
        return f.torch()


def _streams(*names: str) -> list[pe.Stream]:
    """New streams with names that do not depend on what ran before."""
    streams = [pe.device("numpy").stream() for _ in names]
    for stream, name in zip(streams, names, strict=True):
        stream.name = name
    return streams


OUTSIDE: dict[str, Callable[[], object]] = (
    ON_DEVICES
    | ON_PLANS
    | {
        name: value
        for name, value in vars().copy().items()
        if isinstance(value, types.FunctionType) and value.__module__ == __name__ and name[0] != "_"
    }
)
