"""The programs of the corpus: kernels of the tests, workloads, tutorials, random programs."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import plusequals as pe
from benchmarks.cell import Size as WorkSize
from benchmarks.cell import Workload
from benchmarks.cells import WORKLOADS
from plusequals.dsl.api.gradients import Derivative
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.printer import print_procedure
from tests.kernels.registry import KERNELS
from tests.programs import batch
from tests.programs.hunt import program_of
from tests.programs.model import ArgSpec, Program
from tests.programs.open_sizes import after_another_value, open_sizes

from .targets import EVERY, SIZES, Size, Variant, fixed, some

NAMES: dict[str, Any] = {"np": np, "math": math}
TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
MIX = ("array", "index", "mixed", "nest", "python") * 2
DERIVATIVES = ("gradient", "value_and_gradient", "vjp", "jvp", "backward")
KINDS = (*MIX[:-1], "large")
"""The kinds of ten random programs in a row."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, and the arguments that it is called with."""

    function: Callable[[], Any]
    """Returns the function as `cd` makes it, which knows nothing of calls before."""
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A program of the corpus."""

    name: str
    """Its kind, a slash, and what it is called there."""
    variants: tuple[Variant, ...]
    make: Callable[[], Call]
    stored: Any = None
    """The program itself as values for JSON, None where a name is enough."""


def _of(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """Return the call of a plain function."""
    bound = inspect.signature(function).bind(*args, **named)
    return Call(lambda: pe.cd(function), bound.arguments)


# -- kernels, workloads, tutorials ---------------------------------------------------------------


def kernels() -> Iterator[Entry]:
    """Yield the kernels of the tests at both of their sizes."""
    for kernel in KERNELS:
        for size in ("tiny", "medium"):
            # run-time sizes are the same, whatever they are
            variants = tuple(v for v in EVERY if size == "medium" or v.size == "static")
            make = _later(lambda kernel, size: _of(kernel.function, *kernel.make(size, 1)))
            yield Entry(f"kernel/{kernel.name}/{size}", variants, make(kernel, size))


def workloads() -> Iterator[Entry]:
    """Yield the workloads of the benchmark at all of their sizes."""
    for work in WORKLOADS:
        for size in work.sizes:
            is_last = size is work.sizes[-1]
            variants = tuple(v for v in EVERY if is_last or v.size == "static")
            yield Entry(f"workload/{work.name}/{size.name}", variants, _later(_work)(work, size))


def _work(work: Workload, size: WorkSize) -> Call:
    module = importlib.import_module(f"benchmarks.{work.kind}.with_plusequals")
    case = work.case(size)
    outputs = tuple(np.empty(one.shape, one.dtype) for one in case.results)
    function = getattr(module, work.name).__wrapped__
    return _of(function, (*outputs, *case.inputs, *case.numbers), {})


def _later(function: Callable[..., Call]) -> Callable[..., Callable[[], Call]]:
    """Return a function that makes a call when it is asked for, not before."""
    return lambda *args: lambda: function(*args)


def tutorials() -> Iterator[Entry]:
    """Yield the functions of the tutorials, with arguments as the tutorials give them."""
    for script, found in GIVEN.items():
        for name, given in found.items():
            yield Entry(f"tutorial/{script}/{name}", EVERY, _later(_tutorial)(script, name, given))


def _tutorial(script: str, name: str, given: Mapping[str, str]) -> Call:
    functions = functions_of(TUTORIALS / f"{script}.py")
    function = functions[name]
    arguments = {key: functions.get(text) or _value(key, text) for key, text in given.items()}
    if isinstance(function, Derivative):
        make, parts = function.__reduce__()
        bound = inspect.signature(function).bind(**arguments)
        return Call(lambda: make(*parts), bound.arguments)
    return _of(getattr(function, "__wrapped__", function), (), arguments)


def functions_of(path: Path) -> dict[str, Any]:
    """Return the functions of a script and their derivatives; nothing else of it runs but what it
    imports of ours, and the constants that they use."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    keeps = (_is_function, _is_constant, _is_derivative)
    kept = [one for one in tree.body if any(test(one) for test in keeps)]
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    vars(module).update(np=np, pe=pe, cd=pe.cd)
    exec(compile(ast.Module(kept, []), str(path), "exec"), vars(module))
    return vars(module)


def _is_function(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.FunctionDef)


def _is_derivative(stmt: ast.stmt) -> bool:
    """Whether a statement is `name = pe.gradient(...)`, or another derivative of that kind."""
    return (
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.value, ast.Call)
        and ast.unparse(stmt.value.func).removeprefix("pe.") in DERIVATIVES
    )


def _is_constant(stmt: ast.stmt) -> bool:
    return (
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.targets[0], ast.Name | ast.Tuple)
        and all(isinstance(one, ast.Constant) for one in ast.walk(stmt.value)
                if not isinstance(one, ast.Tuple | ast.Load))
    )  # fmt: skip


def _value(name: str, text: str) -> Any:
    """Return an argument from its description: `float32 64 10`, `tensor 64 10`, or a number."""
    kind, *sizes = text.split()
    shape = tuple(map(int, sizes))
    if kind == "tensor":
        return pe.tensor(name, shape, dtype="float32", fields=("vel",))
    if kind in ("float32", "float64", "int64"):
        return np.zeros(shape, kind)
    return ast.literal_eval(text)


_NETWORK = {"w1": "tensor 64 96", "b1": "tensor 96", "w2": "tensor 96 10", "b2": "tensor 10"}
_BATCH = {"x": "float32 32 64", "y": "int64 32"}
_PENDULUM = {"p": "float64 3", "table": "float64 161", "friction": "between"}
_STATE = {"angle": "1.0", "speed": "0.5", "time": "0.0", **_PENDULUM}
_ONE_LAYER = {"w": "float32 64 10", "b": "float32 10", **_BATCH, "rate": "0.5"}
GIVEN: dict[str, dict[str, dict[str, str]]] = {
    "01_digits": {
        "read": {"label": "int64 360", "x": "float32 360 64", **_NETWORK},
        "descend": {"p": "tensor 64 96", "rate": "0.1", "momentum": "0.9", "decay": "1e-4"},
        "cross_entropy": {**_NETWORK, **_BATCH},
        "backward": {**_NETWORK, **_BATCH},
        "train": {**_NETWORK, **_BATCH, "rate": "0.1", "momentum": "0.9", "decay": "1e-4"},
    },
    "02_heat": {
        "diffuse": {"u": "float64 240 240", "source": "float64 240 240", "rate": "0.2",
                    "steps": "100"},
    },
    "03_every_stage": {
        "distances": {"d": "float64 4 5", "a": "float64 4 3", "b": "float64 5 3"},
    },
    "04_two_streams": {
        "gradient": {"w": "tensor 64 10", "b": "tensor 10", "x": "float64 700 64",
                     "y": "int64 700", "scale": "0.001"},
        "descend": {"w": "tensor 64 10", "b": "tensor 10", "rate": "0.5"},
        "merge_w": {"w": "tensor 64 10"},
        "merge_b": {"b": "tensor 10"},
    },
    "05_the_first_wrong_number": {"train": _ONE_LAYER, "repaired": _ONE_LAYER},
    "06_on_a_gpu": {
        "train": {"w1": "float32 64 64", "b1": "float32 64", "w2": "float32 64 10",
                  "b2": "float32 10", "x": "float32 128 64", "y": "int64 128", "rate": "0.5"},
    },
    "07_plans": {
        "cool": {"new": "float64 32 32", "old": "float64 32 32", "most": "float64 1"},
        "describe": {"result": "float64 1", "plate": "float64 32 32"},
    },
    "08_fitting": {
        "nearest": {"table": "float64 161", "speed": "0.5"},
        "between": {"table": "float64 161", "speed": "0.5"},
        "slope": _STATE,
        "step": _STATE,
        "swing": _PENDULUM,
        "loss": {**_PENDULUM, "data": "float64 1000"},
        "descent": {**_PENDULUM, "data": "float64 1000"},
    },
}  # fmt: skip
"""The arguments of the compiled functions of each tutorial; some are functions, by name."""


# -- random programs -----------------------------------------------------------------------------


def random_name(seed: int, number: int) -> str:
    """Return the name of a random program."""
    return f"random/{seed}:{number}/{KINDS[number % len(KINDS)]}"


def random_program(seed: int, number: int) -> Entry:
    """Return the random program of that number; two neighbours of a kind share the variants."""
    program = program_of(seed, number, KINDS[number % len(KINDS)])
    return stored_program(random_name(seed, number), number, program)


def stored_program(name: str, number: int, program: Program) -> Entry:
    """Return the entry of a random program, which is stored with it."""
    stored = {"number": number, "text": program.text, "args": [asdict(a) for a in program.args]}
    return Entry(name, some(number + number // len(KINDS)), lambda: _random(program), stored)


def again(name: str, stored: Any) -> Entry:
    """Return the random program that was stored."""
    args = tuple(_spec(one) for one in stored["args"])
    return stored_program(name, stored["number"], Program(stored["text"], args))


def _spec(values: dict[str, Any]) -> ArgSpec:
    view = values["view"]
    view = None if view is None else tuple(view)
    return ArgSpec(**{**values, "shape": tuple(values["shape"]), "view": view})


def _random(program: Program) -> Call:
    return Call(lambda: pe.cd_from_source(program.text, NAMES), program.make())


# -- elaboration ---------------------------------------------------------------------------------


def procedures(entry: Entry) -> Iterator[tuple[Size, Procedure | Exception]]:
    """Yield what a program means for its own sizes, and for run-time sizes where that differs.

    In place of what is refused there is the error. Profiles mean the same here.
    """
    wanted = {variant.size for variant in entry.variants}
    before = ""
    with fixed(), batch.installed():
        call = entry.make()
        for size in SIZES:
            try:
                procedure = _elaborated(call, size == "dynamic")
            except Exception as why:
                if size in wanted:
                    yield size, why
                continue
            text = print_procedure(procedure)
            if text != before and size in wanted:
                yield size, procedure
            before = text


def _elaborated(call: Call, dynamic: bool) -> Procedure:
    """Return the procedure of a call; where it is `dynamic`, sizes and integers are open."""
    function, values = call.function(), call.arguments
    with open_sizes(dynamic):
        if not dynamic or not any(isinstance(one, int | tuple) for one in values.values()):
            return function.procedure(*values.values())
        with fixed(backend=batch.NAME), after_another_value(function, values):
            return function.procedure(*values.values())
