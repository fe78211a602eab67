"""Index expressions: symbols, and quasi-affine expressions in them, in normal form.

    Affine := offset + sum(coefficient * Atom)
    Atom   := Symbol | Quasi(op, Affine, Affine)        op: min max floordiv mod mul
    Range  := symbol in [lo, hi)                         bounds may use symbols bound further out

A symbol is an index letter, a loop variable, a run-time size or a run-time integer read once
(`Let`). `Quasi` closes the expressions under tile tails, wrapping and reshape. Every constructor
here normalises, so equal values built differently mostly compare equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from ...base.dataclass import dataclass

QuasiOp = Literal["min", "max", "floordiv", "mod", "mul"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """An integer with a name: unique by `serial` within a function, printed by `name`."""

    name: str
    serial: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Symbol):
            return NotImplemented
        return self.serial == other.serial and self.name == other.name

    def __hash__(self) -> int:
        return self.serial

    def __repr__(self) -> str:
        return f"{self.name}.{self.serial}"


class _Hashed:
    """Has a slot for the hash of a value, which is that of a nested structure; memoized."""

    __slots__ = ("hash",)

    hash: int


@dataclass(frozen=True, slots=True)
class Quasi(_Hashed):
    """An integer function of two affine expressions that is not affine itself."""

    op: QuasiOp
    left: Affine
    right: Affine

    def __hash__(self) -> int:
        try:
            return self.hash
        except AttributeError:
            object.__setattr__(self, "hash", hash((self.op, self.left, self.right)))
            return self.hash


Atom = Symbol | Quasi
_NO_SYMBOLS: frozenset[Symbol] = frozenset()


@dataclass(frozen=True, slots=True)
class Affine:
    """`offset + sum(coefficient * atom)`; terms are ordered and have no zero coefficient."""

    terms: tuple[tuple[Atom, int], ...] = ()
    offset: int = 0

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.offset + other) if other else self
        if not other.terms:
            return Affine(self.terms, self.offset + other.offset) if other.offset else self
        if not self.terms:
            return Affine(other.terms, self.offset + other.offset)
        return _add_scaled(self, other, 1)

    def __sub__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.offset - other) if other else self
        if not other.terms:
            return Affine(self.terms, self.offset - other.offset) if other.offset else self
        if self.terms == other.terms:
            return const(self.offset - other.offset)
        return _add_scaled(self, other, -1)

    def __mul__(self, factor: int) -> Affine:
        if factor in (0, 1):
            return self if factor else const(0)
        if not self.terms:
            return const(self.offset * factor)
        return Affine(tuple([(a, k * factor) for a, k in self.terms]), self.offset * factor)

    def __neg__(self) -> Affine:
        return self * -1

    @property
    def constant(self) -> int | None:
        """The value where it is a constant, else None."""
        return None if self.terms else self.offset

    @property
    def symbol(self) -> Symbol | None:
        """The symbol where the expression is exactly that symbol, else None."""
        match self:
            case Affine(((Symbol() as symbol, 1),), 0):
                return symbol
            case _:
                return None

    def symbols(self) -> frozenset[Symbol]:
        """Every symbol that appears, also inside `Quasi`."""
        if not self.terms:
            return _NO_SYMBOLS
        if len(self.terms) == 1 and isinstance(self.terms[0][0], Symbol):
            return frozenset((self.terms[0][0],))
        result: set[Symbol] = set()
        for atom, _ in self.terms:
            if isinstance(atom, Symbol):
                result.add(atom)
            else:
                result |= atom.left.symbols() | atom.right.symbols()
        return frozenset(result)

    def coefficient(self, symbol: Symbol) -> int:
        """The factor of a symbol at top level; 0 where it does not appear there."""
        for atom, k in self.terms:
            if atom is symbol or atom == symbol:
                return k
        return 0

    def __repr__(self) -> str:
        return affine_text(self)


def const(value: int) -> Affine:
    """Return the index expression of a constant."""
    return _SMALL_CONSTANTS[value] if 0 <= value < len(_SMALL_CONSTANTS) else Affine((), value)


_SMALL_CONSTANTS = tuple([Affine((), value) for value in range(65)])
"""The expressions of small constants, which most are."""


def var(symbol: Symbol) -> Affine:
    """Return the index expression of one symbol."""
    return Affine(((symbol, 1),), 0)


def minimum(left: Affine, right: Affine) -> Affine:
    """Return min(left, right), folded where the difference is a constant."""
    gap = (left - right).constant
    if gap is not None:
        return left if gap <= 0 else right
    return _commutative_quasi("min", left, right)


def maximum(left: Affine, right: Affine) -> Affine:
    """Return max(left, right), folded where the difference is a constant."""
    gap = (left - right).constant
    if gap is not None:
        return left if gap >= 0 else right
    return _commutative_quasi("max", left, right)


def multiply(left: Affine, right: Affine) -> Affine:
    """Return left * right; affine when either is a constant."""
    if left.constant is not None:
        return right * left.constant
    if right.constant is not None:
        return left * right.constant
    return _commutative_quasi("mul", left, right)


def floordiv(left: Affine, right: Affine) -> Affine:
    """Return the floor of left / right. `right` must not be zero; a constant zero is an assertion
    error."""
    by = right.constant
    assert by != 0, "index division by zero"
    if by is not None:
        if left.constant is not None:
            return const(left.constant // by)
        if by == 1:
            return left
        match left:
            case Affine(((Quasi("floordiv", inner, Affine((), before)), 1),), 0) if (
                by > 0 and before > 0
            ):
                return floordiv(inner, const(before * by))
        whole = tuple((atom, k // by) for atom, k in left.terms if k % by == 0)
        rest = Affine(tuple((a, k) for a, k in left.terms if k % by), left.offset % by)
        if not rest.terms:
            return Affine(whole, left.offset // by)
        if whole or rest.offset != left.offset:
            return Affine(whole, left.offset // by) + _affine_atom(Quasi("floordiv", rest, right))
    return _affine_atom(Quasi("floordiv", left, right))


def mod(left: Affine, right: Affine) -> Affine:
    """Return left modulo right with the sign of right (Python's). `right` must not be zero.

    Of congruent coefficients the one nearest to zero is kept, whose products are smallest.
    """
    by = right.constant
    assert by != 0, "index modulo by zero"
    if by is not None:
        terms = tuple((a, _nearest_residue(k, by)) for a, k in left.terms if k % by)
        rest = Affine(terms, left.offset % by)
        if rest.constant is not None:
            return const(rest.constant % by)
        return _affine_atom(Quasi("mod", rest, right))
    return _affine_atom(Quasi("mod", left, right))


def _nearest_residue(factor: int, by: int) -> int:
    """Return the congruent number nearest to zero; of two the positive one.

    >>> [_nearest_residue(factor, 4) for factor in (-1, 3, 2, -2, 7)], _nearest_residue(5, -4)
    ([-1, -1, 2, 2, -1], 1)
    """
    rest = factor % abs(by)
    return rest - abs(by) if 2 * rest > abs(by) else rest


def recombine_quotients(index: Affine) -> Affine:
    """Return the expression with `q*(a // q) + a % q` written as `a`, wherever that is found, and
    `q*(a // q % m) + a % q` as `a % (q*m)`.

    >>> v = var(Symbol("v", 0))
    >>> digits = mod(floordiv(v, const(2)), const(9)) * 2 + mod(v, const(2))
    >>> recombine_quotients(digits) == mod(v, const(18))
    True
    >>> recombine_quotients(floordiv(v, const(2)) * 2 + mod(v, const(2)))
    v
    >>> recombine_quotients(floordiv(const(3) - v, const(2)) * 2 + mod(const(3) - v, const(2)))
    -v + 3
    """
    for atom, factor in index.terms:
        if isinstance(atom, Quasi) and atom.op == "mod" and atom.right.constant is not None:
            number = atom.right.constant
            for partner, coefficient in index.terms:  # `2*v % 3` is kept as `-v % 3`
                if (
                    isinstance(partner, Quasi)
                    and (partner.op, partner.right, coefficient)
                    == ("floordiv", atom.right, factor * number)
                    and _is_multiple(partner.left - atom.left, number)
                ):
                    rest = index - _scaled_atom(atom, factor) - _scaled_atom(partner, coefficient)
                    return recombine_quotients(rest + partner.left * factor)
            whole = floordiv(atom.left, atom.right)
            wanted = whole * (factor * atom.right.constant)
            coefficients = dict(index.terms)
            if wanted.terms and all(coefficients.get(a) == k for a, k in wanted.terms):
                rest = index - wanted - _scaled_atom(atom, factor)
                return recombine_quotients(rest + atom.left * factor)
            for partner, coefficient in index.terms:
                if (
                    isinstance(partner, Quasi)
                    and partner.op == "mod"
                    and coefficient == factor * number
                ):
                    if (count := partner.right.constant) is not None and partner.left == whole:
                        rest = (
                            index - _scaled_atom(atom, factor) - _scaled_atom(partner, coefficient)
                        )
                        return recombine_quotients(
                            rest + mod(atom.left, const(number * count)) * factor
                        )
    return index


def wrap_64_bits(index: Affine) -> Affine:
    """Return the expression with numbers wrapped to 64 bits: equal in wrapping arithmetic.

    >>> wrap_64_bits(var(Symbol("v", 0)) * (2**64 + 3) + 2**63)
    3*v - 9223372036854775808
    """
    if all(-(2**63) <= n < 2**63 for n in (index.offset, *(k for _, k in index.terms))):
        return index
    offset, *factors = (
        (n + 2**63) % 2**64 - 2**63 for n in (index.offset, *(k for _, k in index.terms))
    )
    atoms = (atom for atom, _ in index.terms)
    return from_terms(dict(zip(atoms, factors, strict=True)), offset)


def _is_multiple(index: Affine, number: int) -> bool:
    """Whether every coefficient of an expression is a multiple of a number."""
    return all(part % number == 0 for part in (index.offset, *(k for _, k in index.terms)))


def substitute(index: Affine, values: Mapping[Symbol, Affine]) -> Affine:
    """Return the expression with symbols replaced, inside `Quasi` too."""
    if len(index.terms) == 1:  # as most have
        ((atom, factor),) = index.terms
        if isinstance(atom, Symbol):
            value = values.get(atom)
            return index if value is None else value * factor + index.offset
    if not index.terms or values.keys().isdisjoint(index.symbols()):
        return index
    totals: dict[Atom, int] = {}
    offset = index.offset
    for atom, factor in index.terms:
        if isinstance(atom, Quasi):
            left, right = substitute(atom.left, values), substitute(atom.right, values)
            value = QUASI_BUILDERS[atom.op](left, right)
        elif atom in values:
            value = values[atom]
        else:
            totals[atom] = totals.get(atom, 0) + factor
            continue
        offset += value.offset * factor
        for inner, k in value.terms:
            totals[inner] = totals.get(inner, 0) + k * factor
    return from_terms(totals, offset)


def evaluate(index: Affine, values: Mapping[Symbol, int]) -> int:
    """Return the value of an expression for values of its symbols."""
    total = index.offset
    for atom, factor in index.terms:
        match atom:
            case Symbol():
                total += factor * values[atom]
            case Quasi(op, left, right):
                total += factor * _apply_quasi(op, evaluate(left, values), evaluate(right, values))
    return total


def extremum_operands(index: Affine, op: QuasiOp) -> tuple[Affine, ...]:
    """Return the operands of a minimum or maximum (`op`); the expression itself where it is none.

    >>> i, j = var(Symbol("i", 0)), var(Symbol("j", 1))
    >>> extremum_operands(minimum(minimum(i, j), const(8)) + 1, "min")
    (9, i + 1, j + 1)
    """
    match index.terms:
        case ((Quasi(name, left, right), 1),) if name == op:
            return tuple(
                side + index.offset
                for part in (left, right)
                for side in extremum_operands(part, op)
            )
        case _:
            return (index,)


def affine_text(index: Affine, name: Callable[[Symbol], str] = lambda symbol: symbol.name) -> str:
    """Return the expression as text, symbols spelled by `name`.

    >>> i, j = Symbol("i", 0), Symbol("j", 1)
    >>> affine_text(var(i) * 2 - var(j) + 1)
    '2*i - j + 1'
    """
    out = ""
    for atom, factor in index.terms:
        text = name(atom) if isinstance(atom, Symbol) else _show_quasi(atom, name)
        body = text if abs(factor) == 1 else f"{abs(factor)}*{text}"
        out += (("-" if factor < 0 else "") if not out else (" - " if factor < 0 else " + ")) + body
    if index.offset or not out:
        minus = index.offset < 0
        sign = (" - " if minus else " + ") if out else "-" if minus else ""
        out += sign + str(abs(index.offset))
    return out


@dataclass(frozen=True, slots=True)
class Range:
    """A symbol running through `lo <= symbol < hi` in steps of one; empty when hi <= lo."""

    symbol: Symbol
    lo: Affine
    hi: Affine


QUASI_BUILDERS: dict[QuasiOp, Callable[[Affine, Affine], Affine]] = {
    "min": minimum, "max": maximum, "floordiv": floordiv, "mod": mod, "mul": multiply,
}  # fmt: skip


def _add_scaled(first: Affine, second: Affine, factor: int) -> Affine:
    """Return the first expression plus a multiple of the second: a merge of their ordered terms."""
    terms: list[tuple[Atom, int]] = []
    left, right, at = first.terms, second.terms, 0
    for atom, k in right:
        k *= factor
        while at < len(left):
            current, coefficient = left[at]
            if current is atom or current == atom:
                k += coefficient
                at += 1
                break
            if _is_ordered_after(current, atom):
                break
            terms.append((current, coefficient))
            at += 1
        if k:
            terms.append((atom, k))
    terms += left[at:]
    offset = first.offset + second.offset * factor
    return Affine(tuple(terms), offset) if terms else const(offset)


def _is_ordered_after(atom: Atom, second: Atom) -> bool:
    """Whether the first of two different atoms is ordered after the second."""
    if isinstance(atom, Symbol):
        key = atom.serial, atom.name
        return isinstance(second, Symbol) and key > (second.serial, second.name)
    return isinstance(second, Symbol) or _show_quasi(atom, repr) > _show_quasi(second, repr)


def from_terms(totals: Mapping[Atom, int], offset: int) -> Affine:
    """Return the normal form of terms with these coefficients, which may be zero, in any order."""
    terms = [(atom, k) for atom, k in totals.items() if k]
    if len(terms) > 1:
        terms.sort(key=_term_key)
    return Affine(tuple(terms), offset) if terms else const(offset)


def _term_key(term: tuple[Atom, int]) -> tuple[int, int, str]:
    atom = term[0]
    return (
        (0, atom.serial, atom.name) if isinstance(atom, Symbol) else (1, 0, _show_quasi(atom, repr))
    )


def _commutative_quasi(op: QuasiOp, left: Affine, right: Affine) -> Affine:
    first, second = sorted((left, right), key=lambda side: affine_text(side, repr))
    return _affine_atom(Quasi(op, first, second))


def _affine_atom(quasi: Quasi) -> Affine:
    return _scaled_atom(quasi, 1)


def _scaled_atom(atom: Atom, factor: int) -> Affine:
    return Affine(((atom, factor),), 0)


def _apply_quasi(op: QuasiOp, left: int, right: int) -> int:
    match op:
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case "floordiv":
            return left // right
        case "mod":
            return left % right
        case "mul":
            return left * right


def _show_quasi(atom: Quasi, name: Callable[[Symbol], str]) -> str:
    left, right = affine_text(atom.left, name), affine_text(atom.right, name)
    match atom.op:
        case "min" | "max":
            return f"{atom.op}({left}, {right})"
        case "floordiv" | "mod" | "mul":
            sign = {"floordiv": "//", "mod": "%", "mul": "*"}[atom.op]
            return f"(({left}){sign}({right}))" if atom.right.terms else f"(({left}){sign}{right})"
