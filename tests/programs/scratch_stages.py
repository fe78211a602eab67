"""Random statements on scratch arrays: how they are made, filled, changed and kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from .writer import Refused, Writer


@dataclass
class Nest:
    """The program so far: its writer, sizes, and the names that may be read where it stands."""

    w: Writer
    many: int
    rows: int
    columns: int
    turned: bool
    """Whether `x` has its columns before its rows."""
    dtype: str
    large: bool
    planes: list[str] = field(default_factory=list)
    """Scratch arrays of rows and columns."""
    lines: list[str] = field(default_factory=list)
    """Scratch arrays of one row."""
    numbers: list[str] = field(default_factory=list)

    @property
    def r(self) -> str:
        """Return how a text writes the number of rows."""
        return "r" if "r" in self.w.env else str(self.rows)

    @property
    def c(self) -> str:
        """Return how a text writes the number of columns."""
        return "c" if "c" in self.w.env else str(self.columns)

    def constant(self) -> str:
        """Return a number that values of the arrays' type may be multiplied by."""
        whole = ("1", "2", "-1", "3")
        if self.dtype[0] == "u":  # what a negative float becomes as one is the processor's matter
            return self.w.rng.choice([number for number in whole if number[0] != "-"])
        return self.w.rng.choice(whole if self.dtype[0] == "i" else (*whole, "0.5", "0.25", "-0.5"))

    def joined(self, parts: list[str]) -> str:
        """Return an expression of one to three of the parts."""
        rng = self.w.rng
        text = rng.choice(parts)
        for _ in range(rng.choice((0, 1, 1, 2))):
            text = (
                f"{text} {rng.choice('+-+-*')} {rng.choice((rng.choice(parts), self.constant()))}"
            )
        return text

    def cell(self, a: str, b: str) -> str:
        """Return a number made of what is in row `a` and column `b`."""
        x = f"x[g, {b}, {a}]" if self.turned else f"x[g, {a}, {b}]"
        planes = [f"{name}[{a}, {b}]" for name in self.planes]
        return self.joined([x, f"y[{a}, {b}]", f"u[{a}]", f"v[{b}]", *planes, *planes])

    def row(self, a: str) -> str:
        """Return a vector over all columns, made of what is in row `a`."""
        x = f"x[g, :, {a}]" if self.turned else f"x[g, {a}]"
        planes = [f"{name}[{a}]" for name in self.planes]
        return self.joined([x, f"y[{a}]", "v", *self.lines, *planes, *planes])

    def column(self, b: str) -> str:
        """Return a vector over all rows, made of what is in column `b`."""
        x = f"x[g, {b}]" if self.turned else f"x[g, :, {b}]"
        planes = [f"{name}[:, {b}]" for name in self.planes]
        return self.joined([x, f"y[:, {b}]", "u", *planes, *planes])

    def plane(self) -> str:
        """Return an array of all rows and columns."""
        x = "x[g].T" if self.turned else "x[g]"
        made = [f"np.maximum({n}, y)" for n in self.planes]
        made += [f"np.where({n} > y, {n}, v)" for n in self.planes] + [
            f"{n} * 2" for n in self.planes
        ]
        return self.joined([x, "y", "u[:, None]", "v", *self.planes, *self.planes, *made])

    def scratch(self) -> str:
        """Return the name of a scratch array of rows and columns."""
        if not self.planes:
            raise Refused
        return self.w.rng.choice(self.planes)


def declare(n: Nest) -> None:
    """A scratch array, of rows and columns or of one row."""
    w, rng = n.w, n.w.rng
    name, shape = w.fresh("t"), f"({n.r}, {n.c})"
    kinds = (
        ["", "", ", y.dtype", ", dtype=np.float32"] if n.dtype[0] == "f" else [f", np.{n.dtype}"]
    )
    if rng.random() < 0.2:
        made = rng.choice((f"np.zeros({n.c}{rng.choice(kinds)})", "v * 2", "y[0].copy()"))
        w.add(f"{name} = {made}")
        n.lines.append(name)
        return
    forms = [f"np.zeros({shape}{rng.choice(kinds)})"] * 5 + [
        f"np.ones({shape}{rng.choice(kinds)})",
        f"np.full({shape}, {n.constant()}{rng.choice(kinds)})",
        "np.zeros_like(y)", "y.copy()", "y * 2",
    ]  # fmt: skip
    if "g" in w.env:
        forms += [f"({n.plane()}) + 0"] * 3
    if rng.random() < 0.15:
        w.add(f"{name} = np.empty({shape}{kinds[0]})", f"{name}[...] = 1")
    else:
        w.add(f"{name} = {rng.choice(forms)}")
    n.planes.append(name)


def fill(n: Nest) -> None:
    """Loops that write a scratch array along one axis or the other."""
    rng, t = n.w.rng, n.scratch()
    a, b = n.w.fresh("a"), n.w.fresh("b")
    op = rng.choice(("=", "=", "=", "+="))
    over_rows, over_columns = f"range({n.r})", f"range({n.c})"
    if rng.random() < 0.2:
        over_rows = f"range({n.r} - 1, -1, -1)"
    by_cells = [f"        {t}[{a}, {b}] {op} {n.cell(a, b)}"]
    if rng.random() < 0.3:
        by_cells = [f"        if {n.cell(a, b)} > {n.constant()}:", "    " + by_cells[0]]
    forms = [
        [f"for {b} in {over_columns}:", f"    {t}[:, {b}] {op} {n.column(b)}"],
        [f"for {b} in {over_columns}:", f"    {t}[:, {b}] {op} {n.column(b)}"],
        [f"for {a} in {over_rows}:", f"    {t}[{a}] {op} {n.row(a)}"],
        [f"{t}[...] {op} {n.plane()}"],
        [f"{t}[::2] {op} ({n.plane()})[::2]"],
    ]
    if not n.large or rng.random() < 0.2:
        forms += [
            [f"for {a} in {over_rows}:", f"    for {b} in {over_columns}:", *by_cells],
            [f"for {b} in {over_columns}:", f"    for {a} in {over_rows}:", *by_cells],
            [f"for {b} in {over_columns}:", f"    for {a} in range({b} % 2, {n.r}):", *by_cells],
        ]
    n.w.add(*rng.choice(forms))


def recur(n: Nest) -> None:
    """A recurrence along an axis of a scratch array."""
    rng, t = n.w.rng, n.scratch()
    k, b = n.w.fresh("k"), n.w.fresh("b")
    op, c = rng.choice(("+=", "+=", "-=", "=")), n.constant()
    rows, columns = f"range(1, {n.r})", f"range(1, {n.c})"
    forms = [
        *[[f"for {k} in {rows}:", f"    {t}[{k}] {op} {t}[{k} - 1]"]] * 3,
        [f"for {k} in {rows}:", f"    {t}[{k}] = {t}[{k} - 1] * {c} + {n.row(k)}"],
        [f"for {k} in {columns}:", f"    {t}[:, {k}] {op} {t}[:, {k} - 1]"],
        [f"for {k} in {columns}:", f"    {t}[:, {k}] = np.maximum({t}[:, {k} - 1], {n.column(k)})"],
        [f"for {k} in range({n.r} - 2, -1, -1):", f"    {t}[{k}] {op} {t}[{k} + 1] * {c}"],
        [f"for {k} in range(2, {n.r}):", f"    {t}[{k}] = {t}[{k} - 1] - {t}[{k} - 2]"],
        [f"for {k} in {rows}:", f"    for {b} in {columns}:",
         f"        {t}[{k}, {b}] = {t}[{k} - 1, {b}] + {t}[{k}, {b} - 1] * {c}"],
        [f"for {b} in range({n.c}):", f"    for {k} in {rows}:",
         f"        {t}[{k}, {b}] {op} {t}[{k} - 1, {b}]"],
    ]  # fmt: skip
    n.w.add(*rng.choice(forms[:8] if n.large and rng.random() < 0.8 else forms))


def sweep(n: Nest) -> None:
    """Sweeps that make an array of its own neighbours, several times."""
    rng, t, s = n.w.rng, n.scratch(), n.w.fresh("s")
    o, times = n.w.fresh("o"), n.w.rng.randrange(1, 6)
    forms = [
        [f"    {t}[1:-1] = {t}[:-2] + {t}[2:]"],
        [f"    {t}[1:-1, 1:-1] = {t}[:-2, 1:-1] - {t}[1:-1, 2:]"],
        [f"    {t}[:, 1:] = {t}[:, :-1] + v[1:]"],
        [f"    {o} = {t}.copy()", f"    {t}[1:-1] = {o}[:-2] - {o}[2:] + {o}[1:-1]"],
        [f"    {t}[1:] = {t}[:-1]", f"    {t}[0] = {n.row('0')}"],
        [f"    {t}[...] = {t}[::-1] + y"],
    ]
    n.w.add(f"for {s} in range({times}):", *rng.choice(forms))


def again(n: Nest) -> None:
    """Two scratch arrays that exchange their names after each sweep."""
    t, o, s = n.scratch(), n.w.fresh("t"), n.w.fresh("s")
    n.w.add(
        f"{o} = np.zeros_like({t})",
        f"for {s} in range({n.w.rng.randrange(1, 5)}):",
        f"    {o}[1:-1] = {t}[:-2] + {t}[2:]",
        f"    {t}, {o} = {o}, {t}",
    )
    n.planes.append(o)


def order(n: Nest) -> None:
    """Sorts, and what is made of sorted values."""
    rng, t, s = n.w.rng, n.scratch(), n.w.fresh("s")
    axis = rng.randrange(2)
    forms = [
        f"{t}[...] = np.sort({t}, axis={axis})", f"{t} = np.sort({t}, axis={axis})",
        f"{t}.sort(axis={axis})", f"{t}[:, 0] = np.sort({t}[:, 0])",
        f"{s} = np.median({t}, axis={axis})", f"{s} = np.percentile({t}, 30, axis={axis})",
        f"{s} = np.argsort({t}, axis={axis}, kind='stable')", f"{s} = np.argmax({t}, axis={axis})",
        f"{t} = np.cumsum({t}, axis={axis})", f"{t}[...] = np.cumsum({t}, axis={axis})",
        f"{s} = np.partition({t}, 1, axis={axis})[{', '.join([':', '1'][:: 1 - 2 * (not axis)])}]",
        f"{s} = np.sort({t}.ravel())[::-1]", f"{s} = np.searchsorted(np.sort(u), {t}[:, 0])",
        f"{t} = np.flip({t}, {axis})", f"{t} = np.roll({t}, 1, axis={axis})",
    ]  # fmt: skip
    text = rng.choice(forms)
    n.w.rounds |= "median" in text or "percentile" in text
    n.w.reorders |= "cumsum" in text
    n.w.add(text)
    if text.startswith(s):
        n.w.add(f"{t}[0, 0] += {s}.ravel()[-1]")


def solve(n: Nest) -> None:
    """Linear algebra on a small symmetric part."""
    rng, t = n.w.rng, n.scratch()
    m, s, size = (
        n.w.fresh("m"),
        n.w.fresh("s"),
        min(n.rows, n.columns, rng.choice((1, 2, 3, 5, 20))),
    )
    n.w.add(f"{m} = {t}[:{size}, :{size}] * 0.125")
    n.w.add(f"{m} = {m} + {m}.T + np.eye({size}) * (1 + np.abs({m}).sum() * 2)")
    forms = (
        f"np.linalg.solve({m}, u[:{size}])", f"np.linalg.inv({m})", f"np.linalg.cholesky({m})",
        f"np.linalg.solve({m}, {t}[:{size}])", f"np.linalg.det({m}) ** 0.125", f"{m} @ {m}",
        f"{m} @ {t}[:{size}]",
    )  # fmt: skip
    n.w.rounds = n.w.reorders = True
    n.w.add(f"{s} = np.tanh({rng.choice(forms)})")
    n.w.add(f"{t}[0, 0] += {s}.sum()")


def test(n: Nest) -> None:
    """A branch that writes, by what is known only in the run."""
    rng, t = n.w.rng, n.scratch()
    body = (f"    {t}[...] = {n.plane()}", f"    {t} += {n.constant()}",
            f"    {t}[:, 0] = {n.column('0')}",
            f"    {t}[1:] -= {t}[:-1]", f"    {t} = {t}[::-1] * 2")  # fmt: skip
    lines = [f"if {n.cell('0', '-1')} > {n.constant()}:", rng.choice(body)]
    if rng.random() < 0.5:
        lines += ["else:", rng.choice(body)]
    n.w.add(*lines)


def repeat(n: Nest) -> None:
    """A `while` loop that ends by a value."""
    t, k = n.scratch(), n.w.fresh("k")
    body = n.w.rng.choice((f"    {t}[1:] += {t}[:-1]", f"    {t}[{k} % {n.r}] = {n.row('0')}",
                           f"    {t} = {t} * 2"))  # fmt: skip
    limit = n.w.rng.randrange(1, 6)
    n.w.add(f"{k} = 0", f"while {k} < {limit} and {t}[0, 0] < 40:", body, f"    {k} += 1")


def called(n: Nest) -> None:
    """A plain function inside, which writes what it is given, returns, or has a scratch array."""
    g, t, o = n.w.fresh("q"), n.scratch(), n.w.fresh("t")
    bodies = (
        ["    p[1:] += p[:-1]", "    return p + q"],
        ["    w = np.zeros_like(p)", "    for d in range(w.shape[0]):",
         "        w[d] = p[d] - q[0]", "    return w"],
        ["    w = p.copy()", "    for d in range(1, p.shape[1]):",
         "        w[:, d] = w[:, d - 1] + q[:, d]", "    return w"],
        ["    if p[0, 0] > 0:", "        return p - q", "    return q * 2"],
    )  # fmt: skip
    n.w.add(f"def {g}(p, q):", *n.w.rng.choice(bodies))
    n.w.add(f"{o} = {g}({t}, {n.w.rng.choice((t, 'y', n.plane()))})")
    n.planes.append(o)


def gathered(n: Nest) -> None:
    """Rows in a list or a tuple, and what is made of them."""
    rng, t, p = n.w.rng, n.scratch(), n.w.fresh("p")
    forms = (
        [f"{p} = [{t}[0], {n.row('-1')}]", f"{t}[-1] = {p}[0] + {p}[1]"],
        [f"{p} = ({t}[:, 0], {n.column('-1')})", f"{t}[:, -1] = {p}[1] - {p}[0]"],
        [f"{p} = [v, {t}[0], v]", "for d in range(2):", f"    {t}[0] += {p}[d] * 2"],
        [f"{p} = np.stack(({t}[0], v))", f"{t}[0] = {p}.max(axis=0)"],
        [f"{p}, q = {t}[0], {t}[-1] + 1", f"{t}[0] = {p} + q"],
        [f"{p} = {t}[1:]", f"{p} += 1", f"{t}[:-1] -= {p}"],
        [f"{p} = {t}.T", f"{p}[0] = {n.column('0')}"],
    )
    n.w.add(*rng.choice(forms))


def reduce(n: Nest) -> None:
    """A line of sums or of other reductions, and its use."""
    rng, t, s = n.w.rng, n.scratch(), n.w.fresh("s")
    d = n.w.fresh("d")
    name = rng.choice(("sum", "max", "min", "sum", "any", "prod"))
    n.w.reorders |= name in ("sum", "prod")
    axis = rng.randrange(2)
    use = f"{t} -= {s}" if axis == 0 else f"{t} += {s}[:, None]"
    forms = (
        [f"{s} = {t}.{name}(axis={axis})", use],
        [f"{s} = {t}.{name}()", f"{t}[0] = {s}"],
        [f"{s} = np.zeros({n.c}, {t}.dtype)", f"for {d} in range({n.r}):",
         f"    {s} += {t}[{d}] * u[{d}]", f"{t}[-1] = {s}"],
        [f"{s} = 0.0", f"for {d} in range({n.r}):", f"    {s} = max({s}, {t}[{d}, 0])",
         f"{t}[0, 0] = {s}"],
        [f"{t}[{t} > {n.constant()}] = {n.constant()}"],
        [f"{s} = {t} @ v", f"{t}[:, 0] = {s}"],
    )  # fmt: skip
    chosen = rng.choice(forms)
    n.w.reorders |= " @ " in chosen[0]
    n.w.add(*chosen)


def store(n: Nest) -> None:
    """A result keeps a part of a scratch array."""
    rng, t = n.w.rng, n.scratch()
    op = rng.choice(("=", "=", "=", "+="))
    shape = tuple(next(spec.shape for spec in n.w.args if spec.name == "out"))
    if shape == (n.rows, n.columns):
        n.w.add(
            rng.choice(
                (f"out += {t}", f"out[...] = np.maximum(out, {t})", f"out[g % {n.r}] += {t}[0]")
            )
        )
        return
    forms = {
        (n.rows, n.columns): [t, f"{t}[::-1]", n.plane()],
        (n.columns, n.rows): [f"{t}.T", f"{t}[:, ::-1].T"],
        (n.rows,): [f"{t}[:, 0]", f"{t}[:, -1]", f"{t}.max(axis=1)", f"{t}.sum(axis=1)"],
        (n.columns,): [f"{t}[0]", f"{t}[-1]", f"{t}.max(axis=0)", f"{t}.sum(axis=0)", *n.lines],
        (): [f"{t}[0, 0]", f"{t}[-1, -1]", f"{t}.max()", f"{t}.sum()"],
    }[shape[1:]]
    value = rng.choice(forms)
    n.w.reorders |= "sum" in value
    n.w.add(f"out[g] {op} {value}")


STAGES = (declare, fill, fill, *[recur] * 6, *[sweep] * 3, again, again, order, order, solve, test,
          repeat, called, gathered, gathered, reduce, reduce)  # fmt: skip
