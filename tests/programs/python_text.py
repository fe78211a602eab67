"""Random functions of plain Python around arrays: what the oracle is Python itself.

Tuples, lists and their slices, inner functions with defaults and closures, lambdas in lists,
augmented assignments with effects, loops with `else`, unpacking, conditional expressions. An inner
function `tick` notes each of its calls in an array that is returned, so that anything evaluated at
another moment, twice or never is seen. All integers stay small: Python's do not wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from .layouts import WRITABLE
from .model import ArgSpec, Program

PARAMETERS = ("x", "y", "t", "p", "r", "s")
_HEAD = """def f(x, y, t, p, r, s):
    log = np.zeros(1, dtype=np.int64)
    def tick(v):
        log[0] = (log[0] * 7 + v) % 100003
        return v
"""
_SIZE = 6
"""Elements of each array, at first."""


@dataclass
class _Writer:
    """What is being written: names by kind, tuples with their lengths, and the lines so far."""

    rng: Random
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    ints: list[str] = field(default_factory=lambda: ["p", "r"])
    floats: list[str] = field(default_factory=lambda: ["s"])
    arrays: list[str] = field(default_factory=lambda: ["x", "y"])
    tuples: dict[str, int] = field(default_factory=lambda: {"t": 4})
    pairs: list[str] = field(default_factory=list)
    """Tuples of an integer and a float, which loops and branches bind to others."""
    functions: dict[str, int] = field(default_factory=dict)
    """Inner functions by the number of their parameters without a default."""
    operations: dict[str, int] = field(default_factory=dict)
    """Lists of functions of one number, by their length."""
    size: str = str(_SIZE)
    serial: int = 0
    looping: int = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def name(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}{self.serial}"

    def pick(self, items: list[str]) -> str:
        return self.rng.choice(items)


def program(rng: Random, dynamic: bool = False) -> Program:
    """Return a function of `PARAMETERS` with its arguments.

    Names are none that stand for indices, so that its text means the same to Python.
    """
    text = _text(rng, dynamic)
    return Program(text, _arguments(rng), reorders=True, features=frozenset({"python"}))


def _text(rng: Random, dynamic: bool) -> str:
    w = _Writer(rng, size="len(x)" if dynamic else str(_SIZE))
    for _ in range(rng.randint(1, 3) if dynamic else rng.randint(2, 7)):
        _statement(w, 2)
    shown = [*w.ints, *w.floats, *w.arrays, *w.tuples, *w.pairs]
    parts = [_integer(w, 2), _number(w, 2), *rng.sample(shown, min(len(shown), 4)), "log"]
    w.add(f"return {', '.join(parts)}")
    return _HEAD + "\n".join(w.lines) + "\n"


def _arguments(rng: Random) -> tuple[ArgSpec, ...]:
    arrays = (
        ArgSpec(
            name,
            "float64",
            (_SIZE,),
            layout=rng.choice(WRITABLE) if rng.random() < 0.3 else "C",
            seed=rng.randrange(2**31),
        )
        for name in "xy"
    )
    numbers = ", ".join(map(str, rng.sample(range(-5, 6), 4)))
    return (
        *arrays,
        ArgSpec("t", "tuple", kind=numbers),
        *(ArgSpec(name, "int", kind=str(rng.randint(0, 3))) for name in "pr"),
        ArgSpec("s", "float", kind="1.5"),
    )


# -- expressions --------------------------------------------------------------------------------


def _integer(w: _Writer, depth: int) -> str:
    """Return an expression of a small integer."""
    leaf = [lambda: w.pick(w.ints), lambda: str(w.rng.randint(0, 4)), lambda: _item(w)]
    if w.pairs:
        leaf.append(lambda: f"{w.pick(w.pairs)}[0]")
    if depth <= 0:
        return w.rng.choice(leaf)()
    made: list[Callable[[], str]] = [
        *leaf,
        lambda: f"tick({_integer(w, depth - 1)})",
        lambda: f"tick({_integer(w, depth - 1)})",
        lambda: (
            f"({_integer(w, depth - 1)} {w.pick(['+', '-', '*'])} {_integer(w, depth - 1)}) % 11"
        ),
        lambda: (
            f"({_integer(w, depth - 1)} if {_test(w, depth - 1)} else {_integer(w, depth - 1)})"
        ),
        lambda: f"len({_tuple(w, depth - 1)[0]})",
        lambda: f"sum({_tuple(w, depth - 1)[0]})",
        lambda: f"min({_integer(w, depth - 1)}, {_integer(w, depth - 1)})",
        lambda: f"abs({_integer(w, depth - 1)})",
        lambda: f"int({_test(w, depth - 1)})",
        lambda: f"({_test(w, depth - 1)}) + {_integer(w, depth - 1)}",
        lambda: f"[{_integer(w, depth - 1)}, {_integer(w, depth - 1)}][{w.rng.randint(-2, 1)}]",
        lambda: _comprehended(w, depth),
        lambda: _called(w, depth),
        lambda: f"(lambda a, b={_integer(w, depth - 1)}: a * 2 - b)({_integer(w, depth - 1)})",
        lambda: f"divmod({_integer(w, depth - 1)}, 3)[{w.rng.randint(0, 1)}]",
    ]
    return w.rng.choice(made)()


def _item(w: _Writer) -> str:
    name = w.pick(list(w.tuples))
    size = w.tuples[name]
    if not size:
        return "0"
    at = w.pick([str(w.rng.randrange(-size, size)), "p", "r", "p - r", "-p - 1"])
    return f"{name}[{at}]" if at.lstrip("-").isdigit() or size >= 4 else f"{name}[0]"


def _tuple(w: _Writer, depth: int) -> tuple[str, bool]:
    """Return an expression of a tuple or list of integers, and whether it is a list."""
    name = w.pick(list(w.tuples))
    ends = ["", "1", "p", "-p", "r", "p + 1", "-1", "len(t) - p", "2", "None"]
    made: list[Callable[[], tuple[str, bool]]] = [
        lambda: (name, name.startswith("z")),
        lambda: (f"{name}[{w.pick(ends)}:{w.pick(ends)}]", name.startswith("z")),
        lambda: (f"{name}[::{w.pick(['-1', '2', 'p + 1', '-r - 1'])}]", name.startswith("z")),
        lambda: (f"(*{name}[{w.pick(ends)}:], {_integer(w, depth - 1)})", False),
        lambda: (f"[*{name}, {_integer(w, depth - 1)}, {_integer(w, depth - 1)}]", True),
        lambda: (f"({_integer(w, depth - 1)}, {_integer(w, depth - 1)})", False),
        lambda: (f"[{_integer(w, depth - 1)}] * {w.pick(['2', 'p', '3'])}", True),
        lambda: _joined(w, depth),
        lambda: (f"[c + {_integer(w, 0)} for c in {name}]", True),
        lambda: (
            f"[tick(c) for c in {name}[{w.pick(ends)}:] if c {w.pick(['<', '>', '!='])} 2]",
            True,
        ),
        lambda: (f"tuple({name})", False),
        lambda: (f"list({name})", True),
        lambda: (f"[a - b for a, b in zip({name}, {name}[1:])]", True),
        lambda: (f"[d * c for d, c in enumerate({name}, {w.pick(['0', '1', 'p'])})]", True),
    ]
    return w.rng.choice(made if depth > 0 else made[:3])()


def _joined(w: _Writer, depth: int) -> tuple[str, bool]:
    for _ in range(10):
        (one, first), (two, second) = _tuple(w, depth - 1), _tuple(w, depth - 1)
        if first == second:
            return f"({one} + {two})", first
    return "t + t", False


def _comprehended(w: _Writer, depth: int) -> str:
    over = w.pick(["t", "range(3)", "range(p)", "(1, 2)", "t[p:]", "reversed(t)"])
    return (
        f"sum([{w.pick(['c', 'tick(c)', 'c * c % 5'])} + {_integer(w, depth - 1)} for c in {over}])"
    )


def _called(w: _Writer, depth: int) -> str:
    choices = [*w.functions, *w.operations]
    if not choices:
        return f"tick({_integer(w, depth - 1)})"
    name = w.pick(choices)
    if name in w.operations:
        return f"{name}[{w.rng.randrange(w.operations[name])}]({_integer(w, depth - 1)})"
    count = w.functions[name]
    args = [_integer(w, depth - 1) for _ in range(count)]
    way = w.rng.randint(0, 4)
    if way == 0:
        args.append(f"by={_integer(w, depth - 1)}")
    elif way == 1:
        args.append(_integer(w, depth - 1))
    elif way == 2 and count == 2:
        args = [f"*({', '.join(args)})"]
    elif way == 3:
        names = ["a", "b"][:count]
        args = [f"{n}={e}" for n, e in zip(names, args, strict=True)]
        w.rng.shuffle(args)
    return f"{name}({', '.join(args)})"


def _number(w: _Writer, depth: int) -> str:
    """Return an expression of a float."""
    leaf = [lambda: w.pick(w.floats), lambda: f"{w.pick(w.arrays)}[{_place(w)}]",
            lambda: f"{w.rng.randint(0, 9) / 2}"]  # fmt: skip
    if w.pairs:
        leaf.append(lambda: f"{w.pick(w.pairs)}[1]")
    if depth <= 0:
        return w.rng.choice(leaf)()
    made: list[Callable[[], str]] = [
        *leaf,
        lambda: f"({_number(w, depth - 1)} {w.pick(['+', '-'])} {_number(w, depth - 1)})",
        lambda: f"({_number(w, depth - 1)} * 0.5)",
        lambda: f"({_number(w, depth - 1)} if {_test(w, depth - 1)} else {_number(w, depth - 1)})",
        lambda: f"{w.pick(w.arrays)}.sum()",
        lambda: f"{w.pick(w.arrays)}[{_place(w)}:].sum()",
        lambda: f"max({_number(w, depth - 1)}, {_number(w, depth - 1)})",
        lambda: f"{w.pick(w.arrays)}[{_place(w, depth - 1)}]",
        lambda: f"{w.pick(w.arrays)}[tick({_place(w)})]",
    ]
    return w.rng.choice(made)()


def _place(w: _Writer, depth: int = 0) -> str:
    """Return a position in an array: always in range."""
    if depth <= 0:
        return w.pick(["p", "r", "p + 1", "0", "2", "-1"])
    return f"({_integer(w, depth)}) % {w.size}"


def _test(w: _Writer, depth: int) -> str:
    sides = [_integer(w, depth - 1) for _ in range(3)]
    made: list[Callable[[], str]] = [
        lambda: f"{sides[0]} < {sides[1]}",
        lambda: f"{sides[0]} <= {sides[1]} < {sides[2]}",
        lambda: f"{_number(w, depth - 1)} > {sides[0]}",
        lambda: f"{sides[0]} == {sides[1]} or {sides[2]} > 1",
        lambda: f"{sides[0]} > 0 and {sides[1]} > 0",
        lambda: f"not {sides[0]}",
        lambda: f"{sides[0]} in {w.pick(list(w.tuples))}",
        lambda: f"({sides[0]}, {sides[1]}) < ({sides[2]}, 1)",
        lambda: f"{w.pick(w.pairs)}[0] < {sides[0]}" if w.pairs else f"{sides[1]} != 2",
        lambda: f"{_number(w, 0)} > 0.5",
    ]
    return w.rng.choice(made if depth > 0 else made[:2])()


# -- statements ---------------------------------------------------------------------------------


def _statement(w: _Writer, depth: int) -> None:
    simple = [_set_integer, _set_number, _set_tuple, _augment_name, _augment_item, _store, _unpack,
              _swap, _slice_store, _effect, _set_pair]  # fmt: skip
    blocks = [_if, _for, _for_else, _while, _unrolled]
    tops = [_define, _operations, _array, _pair]
    kinds = [*simple, *simple]
    if depth > 0:
        kinds += blocks
    if w.indent == 1:
        kinds += [*tops, *tops]
    choice = w.rng.choice(kinds)
    if choice in blocks:
        choice(w, depth)  # type: ignore[call-arg, operator]
    else:
        choice(w)  # type: ignore[call-arg, operator]


def _known(w: _Writer, names: list[str], kind: str) -> str:
    """Return a name to set: an old one, or at the top a new one too."""
    old = [name for name in names if name not in PARAMETERS or w.rng.random() < 0.5]
    if w.indent == 1 and (not old or w.rng.random() < 0.6):
        return w.name(kind)
    return w.pick(old or names)


def _free(w: _Writer) -> list[str]:
    """Return the names of integers that may be set: not what ends a loop."""
    return [name for name in w.ints if name not in ("p", "r") and not name.startswith("c")]


def _set_integer(w: _Writer) -> None:
    value, name = _integer(w, 2), _known(w, _free(w) or ["p"], "e")
    if name == "p":
        w.add(f"tick({value})")
        return
    w.add(f"{name} = {value}")
    if name not in w.ints:
        w.ints.append(name)


def _set_number(w: _Writer) -> None:
    value, name = _number(w, 2), _known(w, w.floats, "q")
    w.add(f"{name} = {value}")
    if name not in w.floats:
        w.floats.append(name)


def _set_tuple(w: _Writer) -> None:
    if w.indent > 1:
        _effect(w)
        return
    value, listed = _tuple(w, 2)
    name = w.name("z" if listed else "u")
    w.add(f"{name} = {value}")
    w.tuples[name] = 0  # its length is not followed


def _pair(w: _Writer) -> None:
    name = w.name("v")
    w.add(f"{name} = {_pair_value(w)}")
    w.pairs.append(name)


def _pair_value(w: _Writer) -> str:
    new = f"(({_integer(w, 2)}) % 11, {_number(w, 1)})"
    if not w.pairs:
        return new
    one, other = w.pick(w.pairs), w.pick(w.pairs)
    made = [new, new, one, f"({one}[0] + 1, {other}[1] * 0.5)", f"min({one}, {new})",
            f"max({one}, {other}, {new})", f"({one} if {_test(w, 1)} else {other})",
            f"sorted([{one}, {new}])[0]"]  # fmt: skip
    return w.pick(made)


def _set_pair(w: _Writer) -> None:
    if not w.pairs:
        _effect(w)
    elif len(w.pairs) > 1 and w.rng.random() < 0.2:
        one, other = w.rng.sample(w.pairs, 2)
        w.add(f"{one}, {other} = {other}, {one}")
    else:
        w.add(f"{w.pick(w.pairs)} = {_pair_value(w)}")


def _augment_name(w: _Writer) -> None:
    if w.rng.random() < 0.5:
        w.add(f"{w.pick(w.floats)} {w.pick(['+=', '-='])} {_number(w, 2)}")
        return
    names = [name for name in _free(w) if not name.startswith("d")]
    if names:
        w.add(f"{w.pick(names)} {w.pick(['+=', '-='])} {_integer(w, 2)}")


def _augment_item(w: _Writer) -> None:
    place = w.pick([_place(w), _place(w, 1), f"tick({_integer(w, 1)}) % {w.size}"])
    w.add(f"{w.pick(w.arrays)}[{place}] {w.pick(['+=', '-=', '*='])} {_number(w, 2)}")


def _store(w: _Writer) -> None:
    place = w.pick([_place(w), _place(w, 1), f"tick({_integer(w, 1)}) % {w.size}"])
    w.add(f"{w.pick(w.arrays)}[{place}] = {_number(w, 2)}")


def _slice_store(w: _Writer) -> None:
    name, lower = w.pick(w.arrays), w.pick(["p", "1", "r", "tick(p)", ""])
    sign = w.pick(["=", "+=", "*="])
    part = f"{w.pick(w.arrays)}[{lower}:{lower or 0} + 2]"
    value = _number(w, 1) if lower == "tick(p)" else w.pick([_number(w, 1), part])
    w.add(f"{name}[{lower}:{lower if lower != 'tick(p)' else 'p'} + 2] {sign} {value}"
          if lower else f"{name}[:2] {sign} {_number(w, 1)}")  # fmt: skip


def _unpack(w: _Writer) -> None:
    if w.indent > 1:
        ints = [name for name in w.ints if name.startswith("e")]
        if len(ints) >= 2:
            a, b = w.rng.sample(ints, 2)
            w.add(f"{a}, {b} = {_integer(w, 1)}, {_integer(w, 1)}")
        return
    a, b = w.name("e"), w.name("e")
    value = w.pick([f"{_integer(w, 1)}, {_integer(w, 1)}", "t[p:p + 2]", "t[:2]", "t[1:3][::-1]",
                    f"divmod({_integer(w, 1)}, 4)", "[t[0], p]"])  # fmt: skip
    if "t[p" in value:
        w.add(f"({a}, {b}), {w.name('e')} = t[1:3], {_integer(w, 1)}")
    else:
        w.add(f"{a}, {b} = {value}")
    w.ints += [a, b]


def _swap(w: _Writer) -> None:
    name, other = w.pick(w.arrays), w.pick(w.arrays)
    one, two = _place(w, 1), _place(w)
    w.add(f"{name}[{one}], {other}[{two}] = {_number(w, 1)}, {_number(w, 1)}")


def _effect(w: _Writer) -> None:
    w.add(f"tick({_integer(w, 2)})")


def _array(w: _Writer) -> None:
    name = w.name("w")
    base = w.pick(w.arrays)
    summed = [f"{first} + {_number(w, 1)}" for first in (base, f"np.zeros({w.size})")]
    w.add(f"{name} = {w.pick([*summed, f'{base}.copy()', f'{base}[::-1] * 2.0'])}")
    w.arrays.append(name)


def _define(w: _Writer) -> None:
    """Write an inner function with a default, which may read names around it, and write arrays."""
    name, count = w.name("g"), w.rng.randint(1, 2)
    params = ["a", "b"][:count]
    default = _integer(w, 1)
    star = w.pick(["", "*, "]) if w.rng.random() < 0.3 else ""
    w.add(f"def {name}({', '.join(params)}, {star}by={default}):")
    outer = w.ints, w.floats, dict(w.tuples), w.indent, w.functions
    w.ints, w.indent = [*w.ints, *params, "by"], w.indent + 1
    w.functions = {} if w.rng.random() < 0.7 else dict(w.functions)
    if w.rng.random() < 0.4:
        w.add(f"{w.pick(w.arrays)}[{_place(w)}] += {_number(w, 1)}")
    if w.rng.random() < 0.3:
        w.add(f"if {_test(w, 1)}:")
        w.add(f"    return {_integer(w, 1)}")
    w.add(f"return ({_integer(w, 2)}) % 13")
    w.ints, w.floats, w.tuples, w.indent, w.functions = outer
    if not star:
        w.functions[name] = count


def _operations(w: _Writer) -> None:
    name, size = w.name("ops"), w.rng.randint(1, 3)
    form = w.rng.randint(0, 3)
    if form == 0:
        items = [f"lambda v, c={_integer(w, 1)}: v + c" for _ in range(size)]
        w.add(f"{name} = [{', '.join(items)}]")
    elif form == 1:
        w.add(f"{name} = [lambda v, c=c: v * c + {_integer(w, 1)} for c in range({size})]")
    elif form == 2:
        w.add(f"{name} = [lambda v: v - c for c in range({size})]")
    else:
        w.add(
            f"{name} = ({', '.join(f'lambda v: v * {n} + {w.pick(w.ints)}' for n in range(size))},)"
        )
    w.operations[name] = size


def _block(w: _Writer, depth: int) -> None:
    w.indent += 1
    before = list(w.ints)
    for _ in range(w.rng.randint(1, 3)):
        _statement(w, depth - 1)
    w.add("pass")
    w.ints = before
    w.indent -= 1


def _if(w: _Writer, depth: int) -> None:
    w.add(f"if {_test(w, 2)}:")
    _block(w, depth)
    if w.rng.random() < 0.5:
        w.add("else:")
        _block(w, depth)


def _for(w: _Writer, depth: int) -> None:
    name = w.name("d")
    over = w.pick(["range(3)", "range(p)", "range(p, 4)", "range(3, 0, -1)", "range(tick(2))"])
    w.add(f"for {name} in {over}:")
    w.ints.append(name)
    _block(w, depth)
    w.ints.remove(name)


def _unrolled(w: _Writer, depth: int) -> None:
    name = w.name("d")
    over = w.pick(["t", "t[p:]", "(1, 2, 3)", "t[::-1]", "[tick(1), tick(2)]"])
    w.add(f"for {name} in {over}:")
    w.ints.append(name)
    _block(w, depth)
    if w.rng.random() < 0.5:
        w.indent += 1
        w.add(f"if {_test(w, 1)}:")
        w.add(f"    {w.pick(['break', 'continue'])}")
        w.add(f"tick({_integer(w, 1)})")
        w.indent -= 1
    w.ints.remove(name)


def _for_else(w: _Writer, depth: int) -> None:
    """Write a loop whose `break` and `else` both set a name."""
    at, name = w.name("e"), w.name("d")
    w.add(f"for {name} in {w.pick(['range(4)', 't', 'range(p)', '(1, 2)'])}:")
    w.ints.append(name)
    w.indent += 1
    if w.rng.random() < 0.5:
        _statement(w, 0)
    w.add(f"if {_test(w, 1)}:")
    w.add(f"    {at} = {_integer(w, 1)}")
    w.add("    break")
    if w.rng.random() < 0.5:
        w.add(f"tick({name})")
    w.indent -= 1
    w.ints.remove(name)
    w.add("else:")
    w.add(f"    {at} = {_integer(w, 1)}")
    if w.indent == 1:
        w.ints.append(at)


def _while(w: _Writer, depth: int) -> None:
    name = w.name("c")
    w.add(f"{name} = 0")
    w.add(f"while {name} < {w.pick(['3', 'p', 'p + 1'])}{w.pick(['', f' and ({_test(w, 1)})'])}:")
    w.indent += 1
    w.add(f"{name} += 1")
    w.indent -= 1
    w.ints.append(name)
    _block(w, depth)
    w.ints.remove(name)
    if w.rng.random() < 0.3:
        w.indent += 1
        w.add(f"if {_test(w, 1)}:")
        w.add("    break")
        w.indent -= 1
    if w.rng.random() < 0.3:
        w.add("else:")
        w.add(f"    tick({_integer(w, 1)})")
