"""Chains of explicit loops: one makes an array, others come between, a last one uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .array_text import COMPARE, constant
from .writer import Refused, Writer

Counts = dict[str, int]
"""Loop variables in force with the number of their rounds."""


def chain(w: Writer) -> None:
    """A nest that makes an array, up to three statements between, and one that uses it."""
    size = w.rng.choice(_sizes(w))
    array = w.fresh("v")
    dtype = w.rng.choice(("", "", ", dtype=np.float32"))
    t = w.fresh("t")
    w.add(
        f"{array} = np.zeros({w.extent(size)}{dtype})",
        f"for {t} in range({w.extent(size)}):",
        f"    {array}[{t}] = {value(w, {t: size})}",
    )
    for _ in range(w.rng.randrange(4)):
        w.rng.choice(BETWEEN)(w)
    w.rng.choice(USES)(w, array, size)
    w.features.add("chain")


def _sizes(w: Writer) -> list[int]:
    found = sorted({extent for n in _real(w) for extent in w.env[n].shape if extent})
    if not found:
        raise Refused
    return found


def _count(w: Writer) -> int:
    """Return how often a loop runs: as long as an axis, or one less, so that few are the same."""
    return max(w.rng.choice(_sizes(w)) - w.rng.randrange(2), 1)


def _real(w: Writer, rank: int = 1) -> list[str]:
    """Return the arrays of numbers with an order, that have elements."""
    arrays = ((n, w.env[n]) for n in w.arrays())
    return [n for n, a in arrays if a.ndim >= rank and a.size and a.dtype.kind in "fiu"]


def element(w: Writer, counts: Counts, name: str | None = None) -> str:
    """Return an element of an array: at loop variables, from behind, through indices, fixed."""
    name = name or w.rng.choice(_real(w))
    return f"{name}[{', '.join(_index(w, counts, extent) for extent in w.env[name].shape)}]"


def _index(w: Writer, counts: Counts, extent: int) -> str:
    indices = [a for a in w.args if a.kind.startswith("index:") and int(a.kind[6:]) <= extent]
    pick = w.rng.randrange(8)
    if indices and pick < 3:
        index = w.rng.choice(indices)
        if fits := [t for t, count in counts.items() if count <= index.shape[0]]:
            w.features.add("gather")
            return f"{index.name}[{w.rng.choice(fits)}]"
    fits = [t for t, count in counts.items() if count <= extent]
    if fits and pick < 6:
        return w.rng.choice(fits)
    if fits and pick == 6:
        last = f"{w.extent(extent)} - 1" if w.dynamic else f"{extent - 1}"
        return f"{last} - {w.rng.choice(fits)}"
    smaller = [t for t, count in counts.items() if count < extent]
    return f"{w.rng.choice(smaller)} + 1" if smaller else str(w.rng.randrange(extent))


def value(w: Writer, counts: Counts, *must: str) -> str:
    """Return an expression of elements, numbers and loop variables; `must` are parts of it."""
    parts = list(must) or [element(w, counts)]
    for _ in range(w.rng.randrange(3)):
        numbers = [n for n in w.scalars() if n.startswith("s")] or ["2.5"]
        others = (element(w, counts), element(w, counts), w.rng.choice((*counts, "3")),
                  constant(w), w.rng.choice(numbers))  # fmt: skip
        parts.append(w.rng.choice(others))
    text = parts[0]
    for part in parts[1:]:
        text = f"{text} {w.rng.choice('+-*')} {part}"
    return text


def _target(w: Writer, counts: Counts) -> str:
    """Return an element of a float array to write."""
    names = [n for n in _real(w) if w.env[n].flags.writeable and w.env[n].dtype.kind == "f"]
    if not names:
        raise Refused
    return element(w, counts, w.rng.choice(names))


def nest(w: Writer) -> None:
    """A loop of its own, sometimes with a way out."""
    t, size = w.fresh("t"), _count(w)
    counts = {t: size}
    lines = [f"for {t} in range({w.extent(size)}):"]
    if w.chance(0.15):
        test = f"{element(w, counts)} {w.rng.choice(COMPARE)} {constant(w)}"
        lines += [f"    if {test}:", f"        {w.rng.choice(('break', 'continue'))}"]
    lines.append(f"    {_target(w, counts)} {w.rng.choice(('=', '=', '+='))} {value(w, counts)}")
    w.add(*lines)


def carried(w: Writer) -> None:
    """A loop that assigns numbers and a position, which are used after it, and reductions of the
    same elements, in some order."""
    names = [n for n in _real(w) if w.env[n].ndim == 1]
    if not names:
        raise Refused
    name, t = w.rng.choice(names), w.fresh("t")
    s, r, q, total, extreme = (w.fresh("s") for _ in range(5))
    e = f"{name}[{t}]"
    forms = (
        f"{s} = {e}", f"{s} = {e} * 2", f"{r} = {s}; {s} = {e}", f"{s} = {e}; {r} = {s} - {e}",
        f"{s} = max({s}, {e})", f"if {e} > 0: {s} = {e}", f"{q} = {t}", f"if {e} < 1: {q} = {t}",
        f"{s} = {e}; {q} = {t}", f"{r} = {r} - {s}; {s} = {e}",
    )  # fmt: skip
    lines = w.rng.choices(forms, k=w.rng.choice((1, 1, 2)))
    loop = [f"for {t} in range({w.extent(len(w.env[name]))}):", *("    " + line for line in lines)]
    parts = [
        loop,
        [f"{total} = np.sum({name})"],
        [f"{extreme} = np.{w.rng.choice(EXTREMES)}({name})"],
    ]
    w.rng.shuffle(parts)
    w.add(f"{s}, {r}, {q} = {name}[0], {name}[-1], -1", *(x for part in parts for x in part))
    w.features.add("carried")
    w.reorders = True


EXTREMES = ("max", "min", "argmax", "argmin", "mean")


def number(w: Writer) -> None:
    """A number from an element."""
    w.add(f"{w.fresh('s')} = {value(w, {})}")


def sized(w: Writer) -> None:
    """An array whose size is only known at run time."""
    indices = [a for a in w.args if a.kind.startswith("index:") and a.shape[0]]
    if not indices:
        raise Refused
    array, index = w.fresh("v"), w.rng.choice(indices)
    at = w.rng.randrange(index.shape[0])
    w.add(f"{array} = np.zeros({index.name}[{at}] + 1)", f"{array} += {value(w, {})}")


def rounds(w: Writer) -> None:
    """A loop around a nest."""
    k, t, size = w.fresh("k"), w.fresh("t"), w.rng.choice(_sizes(w))
    counts = {t: size}
    w.add(
        f"{k} = 0",
        f"while {k} < {w.rng.randrange(1, 4)}:",
        f"    for {t} in range({w.extent(size)}):",
        f"        {_target(w, counts)} = {value(w, counts)}",
        f"    {k} += 1",
    )


def to_array(w: Writer, array: str, size: int) -> None:
    """The array is used element by element."""
    t = w.fresh("t")
    counts = {t: size}
    line = f"{_target(w, counts)} {w.rng.choice(('=', '+='))} {value(w, counts, f'{array}[{t}]')}"
    w.add(f"for {t} in range({w.extent(size)}):", f"    {line}")


def to_number(w: Writer, array: str, size: int) -> None:
    """The array is summed into a number, sometimes in an inner loop."""
    t, s = w.fresh("t"), w.fresh("s")
    counts = {t: size}
    lines = [
        f"{s} = {w.rng.choice(('0.0', '1.5', value(w, {}) + ' + 0.0'))}",
        f"for {t} in range({w.extent(size)}):",
    ]
    if w.chance(0.5):
        inner = w.fresh("t")
        counts[inner] = _count(w)
        lines.append(f"    for {inner} in range({w.extent(counts[inner])}):")
    pad = "    " * len(counts)
    text = value(w, counts, f"{array}[{t}]")
    lines.append(f"{pad}{s} = max({s}, {text})" if w.chance(0.2) else f"{pad}{s} += {text}")
    w.add(*lines)


def to_element(w: Writer, array: str, size: int) -> None:
    """The array is summed into one element that was set before."""
    t, cell = w.fresh("t"), _target(w, {})
    text = value(w, {t: size}, f"{array}[{t}]")
    w.add(
        f"{cell} = {value(w, {})}", f"for {t} in range({w.extent(size)}):", f"    {cell} += {text}"
    )


BETWEEN: Sequence[Callable[[Writer], None]] = (nest, nest, nest, number, sized, rounds)
USES: Sequence[Callable[[Writer, str, int], None]] = (to_array, to_number, to_number, to_element)
