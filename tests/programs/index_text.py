"""Random statements of index notation. Letters are i to o; ranges follow from the arrays."""

from __future__ import annotations

import numpy as np

from .array_text import COMPARE, constant
from .writer import Refused, Writer

LETTERS = "ijklmno"
FLOAT_OPS = ("=", "+=", "-=", "*=", "/=", "+=", "=")
INT_OPS = ("=", "+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=")
REDUCE = ("sum", "sum", "sum", "max", "min", "prod", "mean", "any", "all")


class Scope:
    """The letters of a statement with their ranges, and those that may be used at a place."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.sizes: dict[str, int] = {}
        self.unused = list(LETTERS)
        self.fill = w.rng.choice(("", "", ", 1", ", 2"))

    def new(self, size: int) -> str:
        """Return a new letter of that range."""
        letter = self.unused.pop(0)
        self.sizes[letter] = size
        return letter


def arrays(w: Writer, rank: int = 1, real: bool = True) -> list[str]:
    """Return arrays that may be read by letters."""
    return [
        n for n in w.arrays()
        if w.env[n].ndim >= rank and not (real and w.env[n].dtype.kind == "c")
        and all(w.env[n].shape)
    ]  # fmt: skip


def reading(w: Writer, scope: Scope, free: list[str], bare: bool = False) -> str:
    """Return an element of an array at letters in scope. Raises Refused."""
    names = arrays(w)
    if not names:
        raise Refused
    own = [n for n in names if n.startswith("v")]  # what was just made is what passes work on
    name = w.rng.choice(own if own and w.chance(0.5) else names)
    subs = [_sub(w, scope, free, extent, bare) for extent in w.env[name].shape]
    return f"{name}[{', '.join(subs)}]"


def _sub(w: Writer, scope: Scope, free: list[str], extent: int, bare: bool) -> str:
    """Return a subscript for an axis of that extent."""
    fits = [n for n in free if scope.sizes[n] == extent]
    if fits and (bare or w.chance(0.75)):
        return w.rng.choice(fits)
    if bare:
        raise Refused
    smaller = [n for n in free if scope.sizes[n] < extent]
    pick = w.rng.randrange(8)
    if smaller and pick < 3:
        letter = w.rng.choice(smaller)
        room = extent - scope.sizes[letter]
        return f"{letter} + {_shift(w, room)}"
    if fits and pick == 3:
        last = f"{w.extent(extent)} - 1" if w.dynamic else f"{extent - 1}"
        return f"{last} - {w.rng.choice(fits)}"
    if free and pick < 6:
        letter = w.rng.choice(free)
        shift = w.rng.choice((" + 1", " - 1", " - 2", " + 2", ""))
        how = w.rng.choice(("clamp", "wrap", "pad", "pad"))
        return f"{how}({letter}{shift}{scope.fill if how == 'pad' else ''})"
    indices = [
        a for a in w.args if a.kind.startswith("index:") and int(a.kind[6:]) <= extent
        and [n for n in free if scope.sizes[n] == a.shape[0]]
    ]  # fmt: skip
    if indices and pick == 6:
        index = w.rng.choice(indices)
        letters = [n for n in free if scope.sizes[n] == index.shape[0]]
        w.features.add("gather")
        return f"{index.name}[{w.rng.choice(letters)}]"
    return str(w.rng.randrange(extent))


def _shift(w: Writer, room: int) -> str:
    return w.integer() if w.dynamic and w.chance(0.3) else str(w.rng.randrange(1, room + 1))


def value(w: Writer, scope: Scope, free: list[str], depth: int) -> str:
    """Return an expression over letters in scope."""
    if depth <= 0:
        pick = w.rng.randrange(8)
        if pick < 6:
            return reading(w, scope, free)
        if w.dynamic and w.chance(0.5):
            return w.integer()
        return constant(w) if pick == 6 or not free else f"{w.rng.choice(free)}"
    pick = w.rng.randrange(12)
    one = value(w, scope, free, depth - 1)
    if pick < 5:
        return f"({one} {w.rng.choice('+-*+-*/')} {value(w, scope, free, depth - 1)})"
    if pick < 7:
        other = value(w, scope, free, depth - 2)
        return f"where({test(w, scope, free)}, {one}, {other})"
    if pick == 7:
        return f"{w.rng.choice(('max', 'min'))}({one}, {value(w, scope, free, depth - 2)})"
    if pick == 8:
        return f"({one} if {test(w, scope, free)} else {value(w, scope, free, depth - 2)})"
    if pick == 9 and len(scope.unused) > 3:
        return reduction(w, scope, free, depth)
    return w.rng.choice((f"abs({one})", f"(-{one})", f"sqrt(abs(f64({one})))", one))


def test(w: Writer, scope: Scope, free: list[str]) -> str:
    """Return a comparison of letters, or of elements."""
    if len(free) > 1 and w.chance(0.1) and (found := search(w, scope, free, free)):
        return found[0]
    if free and w.chance(0.5):
        one = w.rng.choice(free)
        other = w.rng.choice([n for n in (*free, "1", "2", "0") if n != one])
        return f"{one} {w.rng.choice(COMPARE)} {other}"
    return f"{reading(w, scope, free)} {w.rng.choice(COMPARE)} {constant(w)}"


def reduction(w: Writer, scope: Scope, free: list[str], depth: int) -> str:
    """Return a reduction with binders."""
    sizes = sorted({e for n in arrays(w) for e in w.env[n].shape})
    if not sizes:
        raise Refused
    size = w.rng.choice(sizes)
    letter = scope.new(size)
    inside = [*free, letter]
    name = w.rng.choice(REDUCE)
    body = value(w, scope, inside, depth - 1)
    if name in ("any", "all"):
        body = f"{body} {w.rng.choice(COMPARE)} {constant(w)}"
    if w.chance(0.4):
        return f"{name}[{letter} in range({w.extent(size)})]({body})"
    letters = [letter]
    if len(scope.unused) > 3 and w.chance(0.25):
        letters.append(scope.new(w.rng.choice(sizes)))
    is_test = name in ("any", "all")
    for one in letters:
        inside = [*free, *letters]
        body = body if is_test else f"{body} * {_pinning(w, scope, one, inside)}"
    if is_test:
        ranges = (f"{one} in range({w.extent(scope.sizes[one])})" for one in letters)
        return f"{name}[{', '.join(ranges)}]({body})"
    tests: list[str] = []
    if name not in ("max", "min", "mean"):
        if free and w.chance(0.3):
            tests.append(f"{letter} {w.rng.choice(('<', '<=', '>='))} {w.rng.choice(free)}")
        if w.chance(0.25):
            tests += search(w, scope, letters, [*free, *letters])
    return f"{name}[{', '.join((*letters, *tests))}]({body})"


def search(w: Writer, scope: Scope, letters: list[str], free: list[str]) -> list[str]:
    """Return a test that holds for one value of a letter, where there is something to name it."""
    sought = w.rng.choice(letters)
    others = [n for n in free if n != sought]
    numbers = [n for n in arrays(w) if w.env[n].dtype.kind in "iu"]
    if not others:
        return []
    if not numbers or w.chance(0.2):
        return [f"{sought} == {w.rng.choice(others)}"]
    name = w.rng.choice([n for n in numbers if n == "idx"] or numbers)
    fits = [[n for n in others if scope.sizes[n] == e] for e in w.env[name].shape]
    subs = [w.rng.choice(n) if n else str(w.rng.randrange(e))
            for n, e in zip(fits, w.env[name].shape)]  # fmt: skip
    number = f"{name}[{', '.join(subs)}]"
    w.features.add("search")
    return [w.rng.choice((f"{number} == {sought}", f"{sought} == {number}"))]


def target(w: Writer, scope: Scope) -> tuple[str, list[str]]:
    """Return an element of an array to write, and its letters."""
    names = [n for n in arrays(w, real=True) if w.env[n].flags.writeable]
    if not names:
        raise Refused
    name = w.rng.choice(names)
    subs, free = [], []
    for extent in w.env[name].shape:
        pick = w.rng.randrange(12)
        same = [n for n in free if scope.sizes[n] == extent]
        if pick == 0 and same:
            subs.append(w.rng.choice(same))
        elif pick == 1:
            subs.append(str(w.rng.randrange(extent)))
        else:
            free.append(scope.new(extent))
            subs.append(free[-1])
    if not free:
        raise Refused
    return f"{name}[{', '.join(subs)}]", free


def assign(w: Writer) -> None:
    """Write every element, or accumulate into it."""
    scope = Scope(w)
    to, free = target(w, scope)
    dtype = w.evaluate(to.split("[")[0]).dtype
    op = w.rng.choice(FLOAT_OPS if dtype.kind == "f" else INT_OPS)
    extra: list[str] = []
    if op not in ("=", "/=", "//=", "%=") and w.chance(0.5):
        sizes = sorted({e for n in arrays(w) for e in w.env[n].shape})
        extra = [scope.new(w.rng.choice(sizes))]
    text = value(w, scope, [*free, *extra], w.rng.randrange(1, 4))
    for letter in extra:
        text = f"({text}) * {_pinning(w, scope, letter, free)}"
    w.add(*_guarded(w, scope, free, f"{to} {op} {_cast(w, text, dtype)}"))
    w.features.add("index")


def _pinning(w: Writer, scope: Scope, letter: str, free: list[str]) -> str:
    size = scope.sizes[letter]
    pin = w.rng.choice([n for n in arrays(w) if size in w.env[n].shape])
    subs = [letter if e == size else _sub(w, scope, [*free, letter], e, False)
            for e in w.env[pin].shape]  # fmt: skip
    return f"{pin}[{', '.join(subs)}]"


def _cast(w: Writer, text: str, dtype: np.dtype) -> str:
    """Return the value in a type that can be stored."""
    return text if dtype.kind == "f" else f"{'i64' if dtype.kind == 'i' else 'i64'}({text})"


def _guarded(w: Writer, scope: Scope, free: list[str], line: str) -> tuple[str, ...]:
    if w.chance(0.75):
        return (line,)
    condition = test(w, scope, free)
    if w.chance(0.3):
        condition += f" {w.rng.choice(('and', 'or'))} {test(w, scope, free)}"
    return (f"if {condition}:", f"    {line}")


def new_local(w: Writer) -> None:
    """A new array, indexed by letters, or all elements of one that is there anew."""
    scope = Scope(w)
    names = arrays(w)
    if not names:
        raise Refused
    sizes = sorted({e for n in names for e in w.env[n].shape})
    old = [n for n in names if w.env[n].ndim and all(spec.name != n for spec in w.args)]
    name = w.rng.choice(old) if old and w.chance(0.3) else ""
    shape = w.env[name].shape if name else w.rng.choices(sizes, k=w.rng.randrange(1, 3))
    free = [scope.new(size) for size in shape]
    text = value(w, scope, free, w.rng.randrange(1, 4))
    for letter in free:
        text = f"{text} + {_pinning(w, scope, letter, free)}"
    if name:
        text = _cast(w, text, w.env[name].dtype)
    w.add(f"{name or w.fresh('v')}[{', '.join(free)}] = {text}")
    w.features.add("index")


def reduced(w: Writer) -> None:
    """The whole value is one reduction."""
    scope = Scope(w)
    to, free = target(w, scope)
    dtype = w.evaluate(to.split("[")[0]).dtype
    text = reduction(w, scope, free, 2)
    w.add(f"{to} = {_cast(w, text, dtype)}")
    w.features.add("index")


def extreme(w: Writer) -> None:
    """`t = max(t, e)`, and positions of extremes."""
    scope = Scope(w)
    to, free = target(w, scope)
    if w.chance(0.5):
        w.add(f"{to} = {w.rng.choice(('max', 'min'))}({to}, {reading(w, scope, free)})")
    else:
        size = w.rng.choice(sorted({e for n in arrays(w) for e in w.env[n].shape}))
        letter = scope.new(size)
        body = _pinning(w, scope, letter, free)
        name = w.rng.choice(("argmax", "argmin"))
        w.add(f"{to} = {name}[{letter}]({body})")
    w.features.add("index")


def scatter(w: Writer) -> None:
    """Write through an index array, duplicates included."""
    indices = [a for a in w.args if a.kind.startswith("index:")]
    if not indices:
        raise Refused
    index = w.rng.choice(indices)
    names = [n for n in arrays(w) if w.env[n].flags.writeable and n != index.name
             and w.env[n].shape[0] >= int(index.kind[6:])]  # fmt: skip
    if not names:
        raise Refused
    scope = Scope(w)
    name, letter = w.rng.choice(names), scope.new(index.shape[0])
    free = [letter, *(scope.new(e) for e in w.env[name].shape[1:])]
    dtype = w.env[name].dtype
    text = _cast(w, value(w, scope, free, 2), dtype)
    subs = ", ".join([f"{index.name}[{letter}]", *free[1:]])
    op = w.rng.choice(("=", "+=", "+=", "-=", "*="))
    w.add(f"{name}[{subs}] {op} {text}")
    w.features |= {"index", "scatter"}


STATEMENTS = (assign, assign, assign, new_local, new_local, reduced, extreme, scatter)
