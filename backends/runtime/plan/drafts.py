"""Loops and branches whose arrays are still fields, and the nodes that become of them.

Which array a field means is known when everything has been recorded: the one that the loop or
branch itself uses, else the one that was written last before it, else the only one of the plan,
else the host's.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic
from ...interface import Array
from ..argument_checks import field_of, wrong_argument
from ..field import Field, unseen
from ..memory import Buffer
from .steps import (
    Body,
    Branch,
    Carry,
    Counter,
    Loop,
    Maker,
    Node,
    Predicate,
    Step,
    conditional_accesses,
    devices_of,
    scheduled,
)


@dataclass(frozen=True, slots=True)
class PredicateSpec:
    """A predicate as the user gives it: a function of fields, or a field alone."""

    function: Callable[..., Any] | None
    reads: tuple[Any, ...]
    counted: bool = False
    """Whether the function gets the number of iterations before the values."""

    @classmethod
    def of(cls, given: Any, reads: Sequence[Any], in_loop: bool = False) -> PredicateSpec:
        """Return the predicate of a function of `reads`, or of a tensor with one element.

        That of a loop gets the number of iterations, too, if it takes one argument more. Raises
        CdTypeError CD0852 for anything else, CD0863 for a function of other arguments.
        """
        if not isinstance(reads, list | tuple):
            raise wrong_argument("list of tensors", reads, "write a list: `reads=[y]`")
        if hasattr(given, "field") or isinstance(given, Field) or not callable(given):
            return cls(None, (field_of(given),))
        least, most = _argument_counts(given)
        for counted in (True, False) if in_loop else (False,):
            if least <= len(reads) + counted <= most:
                return cls(given, tuple(reads), counted)
        wanted = f"{len(reads)} values" + (", and the number of iterations" if in_loop else "")
        message = f"a predicate that takes {least} arguments or more is given {wanted}"
        if most < len(reads):
            message = f"a predicate that takes {most} arguments at most is given {wanted}"
        raise CdTypeError(
            Diagnostic(
                "CD0863", message,
                helps=("let it take one argument for each of `reads`: `lambda x, y: ...`",),
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class LoopDraft:
    """A loop whose arrays are still fields."""

    name: str
    predicate: PredicateSpec
    before: Sequence[Step | Draft]
    after: Sequence[Step | Draft]
    carry: Mapping[Any, Any]
    counter: Counter
    at_most: int | None
    line: str
    newest: Mapping[Field, Buffer]
    """The array of each field that was written last before it."""
    writes = ()


@dataclass(frozen=True, slots=True, eq=False)
class BranchDraft:
    """A branch whose arrays are still fields."""

    name: str
    predicate: PredicateSpec
    branches: Sequence[Sequence[Step | Draft]]
    otherwise: Mapping[Any, Any]
    line: str
    newest: Mapping[Field, Buffer]
    """The array of each field that was written last before it."""
    writes = ()


Draft: TypeAlias = LoopDraft | BranchDraft


_Around: TypeAlias = tuple[Sequence[Step], Mapping[Field, Buffer]]
"""The steps of a loop or branch, and the arrays of fields written last before it."""


class Builder:
    """Makes nodes of drafts, when it is known which arrays a plan has."""

    def __init__(
        self,
        fields: Mapping[Buffer, Field],
        makers: Mapping[Buffer, Maker],
        steps: Sequence[Step],
        cap: int | None,
        device: str,
        owner: object,
    ) -> None:
        self._fields, self._steps, self._cap, self._device = fields, steps, cap, device
        self._owner = owner
        """The plan, whose own tensors may be used."""
        self.private: dict[Buffer, Maker] = {}
        """The arrays of those that loops and branches themselves use."""
        self._makers = makers
        """What makes arrays where those of contexts are; others are the host's."""
        self.on_host: dict[Field, None] = {}
        self._around: _Around = ((), {})
        """The steps of the outermost loop or branch, and the arrays written last before it."""

    def nodes(self, drafts: Sequence[Step | Draft], outside: bool = True) -> tuple[Node, ...]:
        """Return the nodes of a body, which is in no loop or branch if it is `outside`."""
        made: list[Node] = []
        for each in drafts:
            if isinstance(each, Step):
                made.append(each)
                continue
            if outside:
                self._around = tuple(steps_of((each,))), each.newest
            made.append(self._node(each))
        return tuple(made)

    def _node(self, draft: Draft) -> Node:
        match draft:
            case LoopDraft():
                return self._loop(draft)
            case BranchDraft():
                return self._branch(draft)
            case _:
                assert_never(draft)

    def _loop(self, draft: LoopDraft) -> Loop:
        before, after = (self._body(part) for part in (draft.before, draft.after))
        carries = tuple(self._carry(t, s, draft.name, s) for t, s in draft.carry.items())
        predicate = self._predicate(draft.predicate)
        targets = {carry.target for carry in carries}
        sources = {carry.source for carry in carries}
        reads, writes = conditional_accesses(
            (before, after), (*predicate.buffers, *targets), sources - targets
        )
        writes = tuple(resource for resource in writes if resource not in targets)
        devices = devices_of((before, after), self._device)
        return Loop(
            draft.name, predicate, before, after, carries, draft.counter, draft.at_most, reads,
            writes, devices, draft.line,
        )  # fmt: skip

    def _branch(self, draft: BranchDraft) -> Branch:
        bodies = tuple(self._body(branch) for branch in draft.branches)
        copies = tuple(self._carry(t, s, draft.name, t) for t, s in draft.otherwise.items())
        predicate = self._predicate(draft.predicate)
        reads, writes = conditional_accesses(
            bodies,
            (*predicate.buffers, *(copy.source for copy in copies)),
            [copy.target for copy in copies],
        )
        devices = devices_of(bodies, self._device)
        return Branch(draft.name, predicate, bodies, copies, reads, writes, devices, draft.line)

    def _body(self, drafts: Sequence[Step | Draft]) -> Body:
        return scheduled(self.nodes(drafts, outside=False), self._cap)

    def _predicate(self, spec: PredicateSpec) -> Predicate:
        reads = tuple(
            read if isinstance(read, Counter) else self._array(field_of(read))
            for read in spec.reads
        )
        return Predicate(spec.function, reads, spec.counted)

    def _carry(self, target: Any, source: Any, name: str, written: Any) -> Carry:
        held, given = (self._array(field_of(each)) for each in (target, source))
        arrays = held.array, given.array
        if arrays[0].shape != arrays[1].shape or arrays[0].dtype != arrays[1].dtype:
            raise CdValueError(
                Diagnostic(
                    "CD0867", f"`{name}` cannot carry `{given.label}` to `{held.label}`: they have "
                    f"the shapes {arrays[1].shape} and {arrays[0].shape}, and the types "
                    f"{arrays[1].dtype} and {arrays[0].dtype}",
                    helps=("carry between tensors of one shape and type",),
                )
            )  # fmt: skip
        field = field_of(written)
        field.require_writable()
        buffer = given if written is source else held

        def note() -> None:
            field.record_write(buffer)
            if buffer is field.host:
                field.host_tick = field.clock

        make = self._makers.get(held, on_host_like), self._makers.get(given, on_host_like)
        return Carry(held, given, make, note)

    def _array(self, field: Field) -> Buffer:
        """Return the array of a field that a loop or branch itself uses.

        Raises CdTypeError CD0876 for one that another plan alone sees.
        """
        if field.owner is not None and field.owner is not self._owner:
            raise unseen(field.label, field.owner)
        buffer = self._chosen_array(field)
        if field.owner is not None:
            self.private[buffer] = self._makers.get(buffer, on_host_like)
        return buffer

    def _chosen_array(self, field: Field) -> Buffer:
        """Return the array of a field that the outermost loop or branch uses, else the one written
        last before that, else the plan's, else the host's."""
        inside, newest = self._around
        for some in (inside, self._steps):
            used = {r: None for step in some for r in (*step.reads, *step.writes)}
            found = [b for b in used if isinstance(b, Buffer) and self._fields.get(b) is field]
            if field in newest and some is inside and not found:
                return newest[field]
            if len(found) == 1:
                return found[0]
            if found:
                raise not_taken(
                    f"`{field.label}` has an array for each of several contexts here",
                    "link the routines into one context: `code.link(first.context)`",
                )
        self.on_host[field] = None
        return field.host


def steps_of(drafts: Sequence[Step | Draft]) -> Iterator[Step]:
    """Yield all steps in program order, also those inside."""
    for each in drafts:
        match each:
            case Step():
                yield each
            case LoopDraft():
                yield from steps_of((*each.before, *each.after))
            case BranchDraft():
                for branch in each.branches:
                    yield from steps_of(branch)


def on_host_like(label: str, array: Array) -> Array:
    """Return an uninitialized array of the host."""
    return np.empty_like(array)


def fields_of(
    drafts: Sequence[Step | Draft],
) -> tuple[dict[Field, None], dict[Field, None]]:
    """Return the fields that loops and branches look at, by predicates and as sources, and those
    that they write themselves: what is carried out, and targets of what passes through."""
    asked: dict[Field, None] = {}
    outputs: dict[Field, None] = {}
    for each in drafts:
        if isinstance(each, Step):
            continue
        reads = (read for read in each.predicate.reads if not isinstance(read, Counter))
        asked |= dict.fromkeys(map(field_of, reads))
        pairs = each.carry if isinstance(each, LoopDraft) else each.otherwise
        asked |= dict.fromkeys(field_of(t) for pair in pairs.items() for t in pair)
        written = pairs.values() if isinstance(each, LoopDraft) else pairs
        outputs |= dict.fromkeys(map(field_of, written))
        parts = (each.before, each.after) if isinstance(each, LoopDraft) else each.branches
        for part in parts:
            inner_asked, inner_outputs = fields_of(part)
            asked |= inner_asked
            outputs |= inner_outputs
    return asked, outputs


def _argument_counts(function: Callable[..., Any]) -> tuple[int, float]:
    """Return how many positional arguments a function takes, at least and at most."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return 0, math.inf
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    return least, math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(
        positional
    )


def misuse(what: str, fix: str) -> CdTypeError:
    """Return the error CD0868: a plan is used as it is not meant."""
    return CdTypeError(Diagnostic("CD0868", what, helps=(fix,)))


def not_taken(what: str, fix: str) -> CdError:
    """Return the error CD0866: a plan does not take something."""
    message = f"{what}: a plan does not take that"
    return CdTypeError(Diagnostic("CD0866", message, helps=(fix,)))
