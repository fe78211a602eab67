"""Random statements over whole arrays, element by element: what a C compiler makes vectors of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from .writer import Refused, Writer

LEAST = 9
"""How many elements arrays have at least."""
_TESTS = ("<", "<=", ">", ">=", "==", "!=")
_CONSTANTS = ("0", "1", "2", "-1")


@dataclass
class Whole:
    """What a statement is made of: arrays of one shape and type, rows that broadcast to it."""

    w: Writer
    names: list[str]
    rows: list[str]
    letters: str
    """Those of the axes in index notation, empty in array notation."""
    left: list[str] = field(default_factory=list)
    """Arrays that no expression reads so far: most are read in one place only."""

    def name(self) -> str:
        """Return one of the arrays."""
        if not self.left:
            self.left = self.w.rng.sample(self.names, len(self.names))
        return self.left.pop()

    def spelled(self, name: str) -> str:
        """Return an element of an array, or the array."""
        rank = self.w.env[name].ndim
        return f"{name}[{', '.join(self.letters[-rank:])}]" if self.letters else name

    def leaf(self) -> str:
        """Return an array, a row or a number."""
        pick = self.w.rng.randrange(10)
        if pick == 0:
            return self.w.rng.choice(_CONSTANTS)
        return self.spelled(
            self.w.rng.choice(self.rows) if pick == 1 and self.rows else self.name()
        )

    def test(self) -> str:
        """Return a test of elements."""
        one = self.spelled(self.name())
        other = self.w.rng.choice(_CONSTANTS) if self.w.chance(0.6) else self.leaf()
        return f"({one} {self.w.rng.choice(_TESTS)} {other})"

    def value(self, depth: int) -> str:
        """Return an expression."""
        if depth == 0:
            return self.leaf()
        one, other = self.value(depth - 1), self.value(self.w.rng.randrange(depth))
        match self.w.rng.randrange(8):
            case 0 | 1 | 2:
                if self.letters and self.w.chance(0.5):
                    return f"({one} if {self.test()} else {other})"
                return f"{'where' if self.letters else 'np.where'}({self.test()}, {one}, {other})"
            case 3:
                name = self.w.rng.choice(("min", "max"))
                return f"{name if self.letters else f'np.{name}imum'}({one}, {other})"
            case 4:
                return f"abs({one})"
            case _:
                return f"({one} {self.w.rng.choice('+-*')} {other})"

    def target(self) -> str:
        """Return a name to write, with its letters."""
        names = [n for n in self.names if self.w.env[n].flags.writeable]
        return self.spelled(self.w.rng.choice(names)) if names and self.w.chance(0.5) else ""


def statement(w: Writer) -> None:
    """Write one statement over all elements of arrays of one shape and type."""
    made = _whole(w)
    forms = (_assigned, _assigned, _assigned, _folded, _repeated)
    w.rng.choice((*forms, _guarded) if made.letters else forms)(w, made)
    w.features.add("whole")


def _whole(w: Writer) -> Whole:
    arrays = {
        n: v for n, v in ((n, w.env[n]) for n in w.arrays())
        if v.dtype.kind in "iuf" and v.size >= LEAST and v.dtype.isnative
    }  # fmt: skip
    kinds = Counter((v.shape, v.dtype) for v in arrays.values())
    if not kinds:
        raise Refused
    (shape, dtype), _ = kinds.most_common(1)[0]
    names = [n for n, v in arrays.items() if v.shape == shape and v.dtype == dtype]
    rows = [n for n in w.arrays() if w.env[n].shape == shape[1:] and w.env[n].dtype == dtype]
    share = {"array": 0.0, "index": 1.0, "mixed": 0.5}[w.notation]
    return Whole(w, names, rows if len(shape) > 1 else [], "ijk"[: len(shape) * w.chance(share)])


def _assigned(w: Writer, made: Whole) -> None:
    target, value = made.target(), made.value(w.rng.randrange(1, 4))
    if not target:
        name = w.fresh("v")
        w.add(
            f"{name}[{', '.join(made.letters)}] = {value}" if made.letters else f"{name} = {value}"
        )
        return
    op = w.rng.choice(("=", "+=", "-=", "*="))
    w.add(f"{target if made.letters or op != '=' else f'{target}[:]'} {op} {value}")


def _guarded(w: Writer, made: Whole) -> None:
    target = made.target()
    if not target:
        raise Refused
    op = w.rng.choice(("=", "+=", "-="))
    w.add(f"if {made.test()}:", f"    {target} {op} {made.value(w.rng.randrange(1, 3))}")


def _folded(w: Writer, made: Whole) -> None:
    how, name = w.rng.choice(("sum", "max", "min", "any", "all")), w.fresh("v")
    value = made.test() if how in ("any", "all") else made.value(w.rng.randrange(1, 3))
    w.reorders |= how == "sum" and w.env[made.names[0]].dtype.kind == "f"
    if not made.letters:
        axis = w.rng.choice(("", ", axis=0", ", axis=-1"))
        w.add(f"{name} = np.{how}({value}{axis})")
        return
    inner = w.rng.randrange(len(made.letters))
    free = made.letters[:inner] + made.letters[inner + 1 :]
    place = f"{name}[{', '.join(free)}]" if free else name
    w.add(f"{place} = {how}[{made.letters[inner]}]({value})")


def _repeated(w: Writer, made: Whole) -> None:
    make: list[Callable[[Writer, Whole], None]] = [_assigned, _folded]
    w.lines.append("    " * w.indent + f"for {w.fresh('t')} in range({w.rng.randrange(1, 4)}):")
    w.indent += 1
    for _ in range(w.rng.randrange(1, 3)):
        w.rng.choice(make)(w, made)
    w.indent -= 1
