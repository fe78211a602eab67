"""Random nests whose iterations have scratch arrays of their own: what schedules make private.

An outer loop makes arrays in each of its iterations, inner loops fill them along either axis,
recurrences, tests, sorts and systems of equations change them, and results keep parts of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .layouts import READABLE, WRITABLE
from .model import ArgSpec, Program
from .scratch_stages import STAGES, Nest, declare, fill, recur, store
from .writer import Refused, Writer

SMALL = ((1, 2, 3, 4, 5, 7), (2, 4, 5, 7, 9, 17, 17, 33), (1, 3, 4, 5, 8, 9, 17))
"""Iterations of the outer loop, rows and columns of a scratch array, one of each."""
LARGE = ((8, 16, 40, 64, 130), (30, 64, 130, 257, 500), (2, 4, 8, 16, 33, 64))
CELLS = 400_000
"""How many cells large scratch arrays have in all iterations: plain Python goes over some of them
one by one."""
_HEADS = ("range({n})", "range({n})", "range({n})", "range(x.shape[0])", "range(len(x))",
          "range({n} - 1, -1, -1)", "range(0, {n}, 2)", "range({n} // 2, {n})")  # fmt: skip


def program(rng: random.Random, large: bool) -> Program:
    """Return a program; raises Refused where plain Python cannot run it."""
    n = _begun(rng, large)
    w = n.w
    if w.chance(0.4):
        w.add("r, c = y.shape")
    if w.chance(0.15):
        declare(n)  # one array for all iterations
    carried = w.chance(0.12)
    if carried:
        w.add(f"last = np.zeros({n.c}, y.dtype)", "total = 0.0")
    is_while = _opened(n)
    if w.chance(0.08):
        w.lines.append("    " * w.indent + f"if u[g % {n.r}] > 2:")
        w.lines.append(
            "    " * (w.indent + 1) + ("break" if w.chance(0.3) or is_while else "continue")
        )
    _try(n, declare)
    _try(n, fill)
    if w.chance(0.4):
        _try(n, recur)
    if carried:
        w.add(f"{n.scratch()}[0] += last")
    for _ in range(rng.randrange(1, 5)):
        _try(n, rng.choice(STAGES))
    for _ in range(rng.randrange(1, 3)):
        _try(n, store)
    if carried:
        w.add(
            f"last = ({n.scratch()}[-1] * {n.constant()}).astype(y.dtype)",
            f"total += {n.scratch()}[0, 0]",
        )
    if is_while:
        w.add("g += 1")
    w.indent = 1
    kept = ["out", *(["last", "total"] if carried else [])]
    kept += [name for name in n.planes if w.chance(0.2) and not is_while]
    w.lines.append(f"    return {', '.join(kept)}")
    w.replay_body()
    text = f"def f({', '.join(spec.name for spec in w.args)}):\n" + "\n".join(w.lines) + "\n"
    return Program(text, tuple(w.args), w.tier, w.reorders, w.rounds, frozenset(w.features))


def _begun(rng: random.Random, large: bool) -> Nest:
    """Return a program of nothing but its arguments."""
    many, rows, columns = (rng.choice(sizes) for sizes in (LARGE if large else SMALL))
    while large and many * rows * columns > CELLS:
        many, rows = max(many // 2, 2), max(rows * 2 // 3, 30)
    if rng.random() < 0.2:
        rows, columns = columns, rows
    dtype = rng.choice(("float64",) * 5 + ("float32", "int64", "int32", "int16", "uint8"))
    n = Nest(Writer(rng), many, rows, columns, rng.random() < 0.4, dtype, large)
    n.w.limit = 1 << 22
    inner = (columns, rows) if n.turned else (rows, columns)
    shapes = {"x": (many, *inner), "y": (rows, columns), "u": (rows,), "v": (columns,),
              "out": _result(n)}  # fmt: skip
    specs = []
    for name, shape in shapes.items():
        layouts = WRITABLE if name == "out" else READABLE
        layout = rng.choice(layouts) if rng.random() < 0.15 else "C"
        specs.append(ArgSpec(name, dtype, shape, "exact", layout, rng.randrange(2**31)))
    n.w.start(specs)
    return n


def _result(n: Nest) -> tuple[int, ...]:
    shapes: tuple[tuple[int, ...], ...] = (
        (n.many, n.rows, n.columns), (n.many, n.columns, n.rows), (n.many, n.rows),
        (n.many, n.columns), (n.many,), (n.rows, n.columns),
    )  # fmt: skip
    return n.w.rng.choice(shapes[:2] if n.w.chance(0.5) else shapes)


def _opened(n: Nest) -> bool:
    """Open the outer loop, or two; whether it is a `while`."""
    w = n.w
    pick = w.rng.randrange(12)
    if pick == 0:
        w.add("g = 0")
        w.lines.append("    while g < x.shape[0]:")
    else:
        if pick == 1:
            w.lines.append(f"    for h in range({w.rng.choice((1, 2, 3))}):")
            w.env["h"] = 0
            w.indent += 1
        head = w.rng.choice(_HEADS).format(n=n.many)
        w.lines.append("    " * w.indent + f"for g in {head}:")
        w.env["g"] = 0
    w.indent += 1
    return pick == 0


def _try(n: Nest, stage: Callable[[Nest], None]) -> None:
    """Run a generator of statements; some other time where that does not work."""
    for _ in range(5):
        kept, depth = list(n.w.lines), n.w.indent
        try:
            stage(n)
            return
        except Refused:
            n.w.lines, n.w.indent = kept, depth
