r"""Outermost-first rewriting of loop nests: the traversal that whole-nest transformations share.

A subclass says for each loop what replaces it, or that it stays; of a loop that stays the inner
loops are asked. It may strip-mine a loop by several widths, with a remainder. No precondition;
postcondition: every loop is asked once, below those that stay.

>>> class Fours(OutermostRewriter):
...     def nest(self, loop, outer):
...         if outer:
...             return None
...         self.decisions.append("in fours")
...         fours = lambda width, lo, hi: replace(loop, lo=lo, hi=hi, step=width)
...         return self.strip_mine(loop, self.end(loop, outer), (4,), fours)
>>> show(lambda program: Fours.on(program, Target()),
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
from ..analysis.dependence import find_dependence, find_privatizable, loop_local_nodes
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
Annotations = list[tuple[int, Symbol]]
"""Annotations for `Program.private_annotations` about temporaries that are created."""


@dataclass(frozen=True, slots=True)
class OutermostRewriter(ABC):
    """The state of rewriting one program, with the decisions."""

    fresh: Fresh
    target: Target
    temporaries: frozenset[int]
    """The ids of the program's temporaries, which are unobservable: nobody sees their values after
    an error."""
    only: Callable[[], Mapping[int, frozenset[int]]]
    """By the `id` of each loop the nodes that only its body accesses; computed on first use."""
    bounds: Bounds
    decisions: list[Decision] = field(default_factory=list)
    annotations: Annotations = field(default_factory=list)

    @classmethod
    def on(cls, program: Program, target: Target) -> Decided:
        """Return the program with its nests rewritten, and the decisions."""
        temporaries = frozenset(node.id for node in program.locals)
        bounds = bounds_of(parameter.node for parameter in program.parameters)
        rewriter = cls(
            fresh_for(program),
            target,
            temporaries,
            cache(partial(loop_local_nodes, program)),
            bounds,
        )
        kernels = tuple(replace(k, body=rewriter.body(k.body, ())) for k in program.kernels)
        if not rewriter.decisions:
            return Decided(program, ())
        annotations = (*program.private_annotations, *rewriter.annotations)
        rewritten = rewriter.fresh.declared(
            replace(program, kernels=kernels, private_annotations=annotations)
        )
        return Decided(rewritten, tuple(rewriter.decisions))

    @abstractmethod
    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return what replaces a loop, None where it stays; `outer` are the loops around it.

        It records a decision for what it replaces: without decisions nothing is replaced.
        """

    def body(self, body: Body, outer: tuple[For, ...]) -> Body:
        """Return a list of statements with its outermost nests rewritten, as far as they are."""
        out: list[Stmt] = []
        for stmt in body:
            replaced = self.nest(stmt, outer) if isinstance(stmt, For) else None
            if replaced is not None:
                out += replaced
            elif type(stmt) in BODIES:
                inside = (*outer, stmt) if isinstance(stmt, For) else outer
                out.append(map_bodies(stmt, partial(self.body, outer=inside)))
            else:
                out.append(stmt)
        return tuple(out)

    def is_free(self, chain: tuple[For, ...], outer: tuple[For, ...]) -> bool:
        """Whether the iterations of each loop of a chain of nested loops are independent.

        Privatizable temporaries are privatized, temporaries are unobservable; iterations may fail
        a check, see `parallel_band.has_checks`.
        """
        return all(
            find_dependence(
                loop, find_privatizable(loop, self.only()[id(loop)]), self.temporaries,
                ranges((*outer, *chain[:n])),
            ) is None
            for n, loop in enumerate(chain)
        )  # fmt: skip

    def end(self, loop: For, outer: tuple[For, ...]) -> Affine:
        """Return the end of a loop, but not before its start if it has no iterations."""
        bounds = self.bounds
        for enclosing in outer:
            bounds = bounds.inside(enclosing)
        least = bounds.least(loop.hi - loop.lo)
        return loop.hi if least is not None and least >= 0 else maximum(loop.hi, loop.lo)

    def strip_mine(
        self, loop: For, end: Affine, widths: Sequence[int],
        strip: Callable[[int, Affine, Affine], Stmt],
    ) -> Body:  # fmt: skip
        """Return a loop up to its end strip-mined, widest strips first, and the remainder loop.

        `strip` returns the loop over the strips of a width, given its start and its end.
        """
        out: list[Stmt] = []
        start = loop.lo
        for width in widths:
            strip_end = start + floordiv(end - start, const(width)) * width
            if (strip_end - start).constant != 0:
                out.append(strip(width, start, strip_end))
            start = strip_end
        rest = replace(loop, lo=start, hi=end)
        return (*out, *((rest,) if (end - start).constant != 0 else ()))
