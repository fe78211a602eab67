r"""Loops changed from the outside in: the walk that schedules of whole nests share.

A schedule says of each loop what takes its place, or that it stays; of a loop that stays the loops
inside are asked. It may cut a loop into strips of several widths, and what is left. It needs
nothing, and guarantees only that every loop is asked once, below those that stay.

>>> class Fours(Outermost):
...     def nest(self, loop, outer):
...         if outer:
...             return None
...         self.decisions.append("in fours")
...         fours = lambda width, lo, hi: replace(loop, lo=lo, hi=hi, step=width)
...         return self.cut(loop, self.end(loop, outer), (4,), fours)
>>> show(lambda program: Fours.on(program, Target()).program,
...      "for i in range(6):\n    for j in range(2):\n        y[i, j] = 1", y="f32[6, 2]")
for i in 0..4 step 4:
    for j in 0..2:
        y[i, j] = 1.0
for i in 4..6:
    for j in 0..2:
        y[i, j] = 1.0
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial

from ...base.dataclass import dataclass
from ..analysis.dependence import confined, independent, private
from ..analysis.subscripts import ranges
from ..ir.bounds import Bounds, bounds_of
from ..ir.decision import Decided, Decision
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum
from ..ir.loops import For, Program, Stmt
from ..ir.rewrite import map_bodies
from ..ir.walk import BODIES
from ..target import Target

Body = tuple[Stmt, ...]
Noted = list[tuple[int, Symbol]]
"""What `Program.rounds` is to say of temporaries that are made."""


@dataclass(frozen=True, slots=True)
class Outermost(ABC):
    """The work on one program; keeps the decisions."""

    fresh: Fresh
    target: Target
    own: frozenset[int]
    only: Callable[[], Mapping[int, frozenset[int]]]
    """By the `id` of each loop what only its body uses; found out when first asked for."""
    known: Bounds
    decisions: list[Decision] = field(default_factory=list)
    rounds: Noted = field(default_factory=list)

    @classmethod
    def on(cls, program: Program, target: Target) -> Decided:
        """Return the program with its nests changed, and what was decided."""
        own = frozenset(node.id for node in program.locals)
        known = bounds_of(parameter.node for parameter in program.parameters)
        work = cls(fresh_for(program), target, own, cache(partial(confined, program)), known)
        kernels = tuple(replace(k, body=work.body(k.body, ())) for k in program.kernels)
        if not work.decisions:
            return Decided(program, ())
        rounds = (*program.rounds, *work.rounds)
        made = work.fresh.declared(replace(program, kernels=kernels, rounds=rounds))
        return Decided(made, tuple(work.decisions))

    @abstractmethod
    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return what takes the place of a loop, None where it stays; `outer` are around it."""

    def body(self, body: Body, outer: tuple[For, ...]) -> Body:
        """Return a list of statements with the outermost nests changed that can be."""
        out: list[Stmt] = []
        for stmt in body:
            made = self.nest(stmt, outer) if isinstance(stmt, For) else None
            if made is not None:
                out += made
            elif type(stmt) in BODIES:
                inside = (*outer, stmt) if isinstance(stmt, For) else outer
                out.append(map_bodies(stmt, partial(self.body, outer=inside)))
            else:
                out.append(stmt)
        return tuple(out)

    def is_free(self, chain: tuple[For, ...], outer: tuple[For, ...]) -> bool:
        """Whether the rounds of loops, each in the one before it, may run in any order."""
        return all(
            independent(
                loop, private(loop, self.only()[id(loop)]), self.own, ranges((*outer, *chain[:n]))
            ) is None
            for n, loop in enumerate(chain)
        )  # fmt: skip

    def end(self, loop: For, outer: tuple[For, ...]) -> Affine:
        """Return where a loop ends; where it begins, if it has no rounds."""
        known = self.known
        for one in outer:
            known = known.inside(one)
        least = known.least(loop.hi - loop.lo)
        return loop.hi if least is not None and least >= 0 else maximum(loop.hi, loop.lo)

    def cut(
        self, loop: For, end: Affine, widths: Sequence[int],
        strip: Callable[[int, Affine, Affine], Stmt],
    ) -> Body:  # fmt: skip
        """Return a loop up to its end in strips, widest first, and the loop over what is left.

        `strip` makes the loop over the strips of a width, given its first round and its end.
        """
        out: list[Stmt] = []
        start = loop.lo
        for width in widths:
            whole = start + floordiv(end - start, const(width)) * width
            if (whole - start).constant != 0:
                out.append(strip(width, start, whole))
            start = whole
        rest = replace(loop, lo=start, hi=end)
        return (*out, *((rest,) if (end - start).constant != 0 else ()))
