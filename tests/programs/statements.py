"""Random statements of array notation, and the control flow around both notations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import index_text, nests, whole
from .array_text import COMPARE, constant, expression, fitting, subscript
from .writer import Refused, Writer

AUGMENTED = ("+=", "-=", "*=", "+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=")


def attempt(w: Writer, make: Callable[[Writer], None]) -> bool:
    """Run a generator of statements; take back what it wrote where that does not work."""
    kept, depth, serial, runs = list(w.lines), w.indent, w.serial, w.runs
    try:
        make(w)
        if any(line.startswith("     ") for line in w.lines[len(kept) :]):
            w.replay()  # a block was not run as a whole yet
        return True
    except Refused:
        w.lines, w.indent, w.serial = kept, depth, serial
        if w.runs != runs:
            w.replay()
        return False


def written(w: Writer, rank: int = 1) -> list[str]:
    """Return the arrays that may be written."""
    return [n for n in w.arrays() if w.env[n].flags.writeable and w.env[n].ndim >= rank]


def new_local(w: Writer) -> None:
    """A new name for the value of an expression, or an old one again."""
    locals_ = [n for n in w.arrays() if n.startswith("v")]
    value = expression(w, w.rng.randrange(1, 4))
    name = w.rng.choice(locals_) if locals_ and w.chance(0.25) else w.fresh("v")
    if name in w.env and w.indent > 1 and not _alike(w.evaluate(value), w.env[name]):
        raise Refused
    w.add(f"{name} = {value}")


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are of one shape and type, so that a loop may exchange them."""
    return np.shape(one) == np.shape(other) and np.result_type(one) == np.result_type(other)


def _storable(value: Any, dtype: np.dtype) -> bool:
    """Whether the language stores a value in an array of that type without a cast."""
    if type(value) in (int, float, bool):
        return dtype.kind in {bool: "biufc", int: "iufc", float: "fc"}[type(value)]
    return np.can_cast(np.result_type(value), dtype, "same_kind")


def new_view(w: Writer) -> None:
    """A new name for part of an array."""
    name = w.rng.choice([n for n in w.arrays() if w.env[n].ndim] or [""])
    if not name:
        raise Refused
    forms = [subscript(w, name)] * 4 + [f"{name}.T", name, f"{name}.reshape(-1)", f"{name}[::-1]"]
    w.add(f"{w.fresh('v')} = {w.rng.choice(forms)}")
    w.features.add("view")


def write(w: Writer) -> None:
    """Assign to part of an array, or to all of it."""
    names = written(w)
    if not names:
        raise Refused
    target = subscript(w, w.rng.choice(names))
    shape = np.shape(w.evaluate(target))
    value = expression(w, w.rng.randrange(1, 4), shape)
    op = w.rng.choice(AUGMENTED) if w.chance(0.5) else "="
    if not _storable(w.evaluate(value), w.evaluate(target).dtype):
        raise Refused
    w.add(f"{target} {op} {value}")


def in_place(w: Writer) -> None:
    """An operator and `=` on a whole name."""
    names = [n for n in w.arrays() if w.env[n].flags.writeable]
    if not names:
        raise Refused
    name = w.rng.choice(names)
    value = expression(w, w.rng.randrange(1, 4), np.shape(w.env[name]))
    w.add(f"{name} {w.rng.choice(AUGMENTED)} {value}")


def element(w: Writer) -> None:
    """Assign to one element."""
    names = written(w)
    if not names:
        raise Refused
    target = subscript(w, w.rng.choice(names), scalar=True)
    value = expression(w, 2, ())
    if not _storable(w.evaluate(value), w.evaluate(target).dtype):
        raise Refused
    w.add(f"{target} {w.rng.choice(('=', '+=', '-=', '*='))} {value}")


def masked(w: Writer) -> None:
    """Assign under a mask."""
    names = written(w)
    if not names:
        raise Refused
    name = w.rng.choice(names)
    array = w.env[name]
    if array.dtype.kind == "c":
        raise Refused
    mask = f"{name} {w.rng.choice(COMPARE)} {constant(w, array.dtype)}"
    same = [n for n in w.arrays() if w.env[n].shape == array.shape and w.env[n].dtype.kind != "c"]
    if w.chance(0.5):
        m = w.fresh("v")
        w.add(f"{m} = {w.rng.choice(same)} {w.rng.choice(COMPARE)} {constant(w, array.dtype)}")
        mask = m
    value = constant(w, array.dtype) if w.chance(0.6) else f"{w.rng.choice(same)}[{mask}]"
    if not _storable(w.evaluate(value), array.dtype):
        raise Refused
    w.add(f"{name}[{mask}] {w.rng.choice(('=', '+=', '*='))} {value}")


def number(w: Writer) -> None:
    """A number: new, or changed."""
    names = [n for n in w.scalars() if n.startswith("s")]
    if names and w.chance(0.5):
        w.add(f"{w.rng.choice(names)} {w.rng.choice(('+=', '-=', '*='))} {expression(w, 1, ())}")
    else:
        w.add(f"{w.fresh('s')} = {expression(w, 2, ())}")


def comprehension(w: Writer) -> None:
    """A list of few or many items, and what it is used for."""
    names = [n for n in w.arrays() if w.env[n].ndim and len(w.env[n])]
    if not names:
        raise Refused
    name, count, k = w.rng.choice(names), w.rng.choice((2, 9, 40, 70)), w.fresh("k")
    at = f"{name}[{k} % {len(w.env[name])}]"
    item = w.rng.choice(
        (f"{at} * 2", f"{at} + {k}", f"{at}", f"-{at}", f"{k} * 3 - 1", f"{name}[:2] + {at}",
         f"{name} * ({k} % 3)", f"[{at}, {at}]", f"max({at}, 1)", f"len({name}) - {k}")
    )  # fmt: skip
    over = w.rng.choice((f"range({count})", f"range({count}, 0, -1)", f"range(1, {2 * count}, 2)"))
    items, use = w.fresh("l"), w.rng.choice(
        ("np.array({})", "np.stack({})", "sum({})", "len({})", "{}[1]", "np.array({}[-2:])",
         "{0}[0] + {0}[-1]", "np.array({0})[{0}[1] > 0]", "tuple({})[1]", "np.array({0} + {0})",
         "sum(v for v in {})", "[v for v in {}][1]")
    )  # fmt: skip
    made = f"[{item} for {k} in {over}]"
    w.reorders |= "sum" in use
    w.add(f"{items} = {made}", f"{w.fresh('v')} = {use.format(items)}")


def swap(w: Writer) -> None:
    """Exchange two local arrays."""
    locals_ = [n for n in w.arrays() if n.startswith("v")]
    pairs = [
        (a, b) for a in locals_ for b in locals_
        if a < b and w.env[a].shape == w.env[b].shape and w.env[a].dtype == w.env[b].dtype
    ]  # fmt: skip
    if not pairs:
        raise Refused
    a, b = w.rng.choice(pairs)
    w.add(f"{a}, {b} = {b}, {a}")
    w.features.add("swap")


def gather(w: Writer) -> None:
    """Read or write through an array of indices."""
    indices = [a.name for a in w.args if a.kind.startswith("index:")]
    arrays = [n for n in w.arrays() if w.env[n].ndim]
    if not indices or not arrays:
        raise Refused
    index, name = w.rng.choice(indices), w.rng.choice(arrays)
    if w.chance(0.3) and w.env[name].flags.writeable:
        shape = np.shape(w.evaluate(f"{name}[{index}]"))
        value = fitting(w, shape)
        if not _storable(w.evaluate(value), w.env[name].dtype):
            raise Refused
        w.add(f"{name}[{index}] = {value}")
    else:
        w.add(f"{w.fresh('v')} = {name}[{index}] {w.rng.choice('+-*')} {constant(w)}")
    w.features.add("gather")


def tried(w: Writer, make: Callable[[Writer], None]) -> None:
    """Run a generator of statements inside of a block, where nothing can be run anew."""
    kept, depth = len(w.lines), w.indent
    try:
        make(w)
    except Refused:
        del w.lines[kept:]
        w.indent = depth


def block(w: Writer, count: int, extra: Callable[[Writer], None] | None = None) -> None:
    """Write statements one deeper."""
    w.indent += 1
    before, known = len(w.lines), set(w.env)
    for _ in range(count):
        tried(w, simple)
    if extra is not None and w.chance(0.3):
        tried(w, extra)
    if len(w.lines) == before:
        w.lines.append("    " * w.indent + "pass")
    w.indent -= 1
    for name in set(w.env) - known:
        del w.env[name]


def loop(w: Writer) -> None:
    """A `for` over a range."""
    t = w.fresh("t")
    low, count = w.rng.randrange(0, 3), w.rng.randrange(0, 5)
    heads = (f"range({count})", f"range({low}, {low + count})", f"range({low + count}, {low}, -1)",
             f"range({low}, {low + 2 * count}, 2)")  # fmt: skip
    head = w.rng.choice(heads)
    sizes = [n for n in w.arrays() if w.env[n].ndim]
    if sizes and w.chance(0.3):
        head = f"range(len({w.rng.choice(sizes)}))"
    if w.dynamic and w.chance(0.5):
        head = w.rng.choice(("range({})", "range(1, {})", "range({}, 0, -1)")).format(w.integer())
    w.lines.append("    " * w.indent + f"for {t} in {head}:")
    w.env[t] = w.rng.randrange(low, low + 2)
    block(w, w.rng.randrange(1, 4), leave)
    w.features.add("for")


def leave(w: Writer) -> None:
    """`break` or `continue` under a test, sometimes with something before it."""
    test = condition(w)
    w.lines.append("    " * w.indent + f"if {test}:")
    if w.chance(0.4):
        known = set(w.env)
        w.indent += 1
        tried(w, w.rng.choice((new_local, new_local, number, swap)))
        w.indent -= 1
        for name in set(w.env) - known:
            del w.env[name]
    w.lines.append("    " * (w.indent + 1) + w.rng.choice(("break", "continue")))
    for _ in range(w.rng.randrange(2)):
        simple(w)


def condition(w: Writer) -> str:
    """Return a scalar test."""
    if w.dynamic and w.chance(0.5):
        return f"{w.integer()} {w.rng.choice(COMPARE)} {w.rng.choice((w.integer(), '2', '3'))}"
    one = expression(w, 2, ())
    if np.result_type(w.evaluate(one)).kind == "c":
        raise Refused
    return f"{one} {w.rng.choice(COMPARE)} {constant(w)}"


def branch(w: Writer) -> None:
    """An `if`, sometimes with an `else`."""
    w.lines.append("    " * w.indent + f"if {condition(w)}:")
    block(w, w.rng.randrange(1, 3))
    if w.chance(0.5):
        w.lines.append("    " * w.indent + "else:")
        block(w, w.rng.randrange(1, 3))
    w.features.add("if")


def repeat(w: Writer) -> None:
    """A `while` with a counter."""
    k = w.fresh("k")
    w.add(f"{k} = 0")
    test = f"{k} < {w.rng.randrange(1, 5)}"
    if w.chance(0.4):
        test += f" {w.rng.choice(('and', 'or'))} {condition(w)}"
    w.lines.append("    " * w.indent + f"while {test}:")
    w.lines.append("    " * (w.indent + 1) + f"{k} += 1")
    block(w, w.rng.randrange(1, 3))
    w.lines.append("    " * (w.indent + 1) + f"if {k} > 6:")
    w.lines.append("    " * (w.indent + 2) + "break")
    w.features.add("while")


def function(w: Writer) -> None:
    """A nested plain function, called at once."""
    g = w.fresh("g")
    body = w.rng.choice(("u * 2 + v", "u - v", "np.where(u > v, u, v)", "u * u - v * 0.5",
                         "u[::-1] + v", "np.maximum(u, v) - 1"))  # fmt: skip
    one = expression(w, 1)
    other = expression(w, 1, np.shape(w.evaluate(one)))
    forms = (
        (f"{g} = lambda u, v: {body}",),
        (f"def {g}(u, v):", f"    return {body}"),
        (f"def {g}(u, v):", f"    u = {body}", "    u += v", "    return u"),
    )
    w.add(*w.rng.choice(forms))
    w.add(f"{w.fresh('v')} = {g}({one}, {other})")
    w.features.add("function")


EFFECTS = (
    ("    u += 1",),
    ("    u[0] = 3", "    return u"),
    ("    u[::2] *= 2", "    return u[::-1]"),
    ("    for t in range(2):", "        u[0] -= 1", "        u = u * 2", "    return u"),
    ("    u[...] = v + 1", "    return v"),
    ("    for t in range(3):", "        u, v = v, u", "    return u"),
    ("    for t in range(3):", "        v[1:] = u[1:] + 1", "        u, v = v, u", "    return u"),
    ("    if u.size > 2 and u[0] > 0:", "        w = u", "    else:", "        w = v",
     "    w[0] = 1", "    return w"),
)  # fmt: skip


def effect(w: Writer) -> None:
    """A nested plain function that writes what it is given, or hands it back."""
    names = [n for n in written(w) if w.env[n].dtype.kind != "b"]
    if not names:
        raise Refused
    one = w.rng.choice(names)
    alike = [n for n in names if _alike(w.env[n], w.env[one])]
    g, body = w.fresh("g"), w.rng.choice(EFFECTS)
    w.add(f"def {g}(u, v):", *body)
    call = f"{g}({one}, {w.rng.choice(alike)})"
    if body[-1].startswith("    return") and w.chance(0.7):
        call = f"{w.fresh('v')} = {call}"
    w.add(call)
    w.features.add("effect")


SIMPLE = (new_local, new_local, new_view, write, write, write, in_place, in_place, element, masked,
          number, swap, gather, comprehension)  # fmt: skip
COMPOUND = (loop, loop, loop, branch, branch, repeat, function, effect, nests.chain, nests.chain,
            nests.carried, nests.carried)  # fmt: skip


def simple(w: Writer) -> None:
    """Write one statement, or one compound one where that is not too deep."""
    share = {"array": 0.0, "index": 0.9, "mixed": 0.5}[w.notation]
    if w.chance(0.2 if w.indent > 1 else 0.6 if w.is_even else 0.1):
        whole.statement(w)
        return
    if w.indent < 4 and w.chance(0.25):
        w.rng.choice(COMPOUND)(w)
    elif w.chance(share):
        w.rng.choice(index_text.STATEMENTS)(w)
    else:
        w.rng.choice(SIMPLE)(w)
