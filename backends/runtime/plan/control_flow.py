"""Loops and branches while they are recorded: the context managers that users hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from ..argument_checks import field_of, wrong_argument
from ..state import RUNTIME
from .drafts import BranchDraft, Draft, LoopDraft, PredicateSpec, misuse
from .recording import Recorder, caller_line
from .steps import Counter, Step


class WhileLoop:
    """The recording of a loop: what is called in its `with` is the part after the predicate."""

    def __init__(
        self, recorder: Recorder, predicate: PredicateSpec, carry: Mapping[Any, Any],
        at_most: int | None, name: str,
    ) -> None:  # fmt: skip
        self._recorder, self._predicate, self._carry = recorder, predicate, carry
        self._at_most, self._name, self._line = at_most, name, caller_line()
        self._body: Any = None
        self.count = Counter(name)
        """The number of iterations so far: an argument of routines, one of `reads` inside."""
        self._before: Sequence[Step | Draft] = ()

    @contextmanager
    def before(self) -> Iterator[None]:
        """Record the part before the predicate, which runs once more than the other."""
        if self._body is None or not self._recorder.is_innermost(self._body):
            raise misuse(
                f"`before` of `{self._name}` is used outside of the loop's own `with`",
                "write it there: `with plan.while_(...) as loop:`, `with loop.before():`",
            )
        with self._recorder.body() as body:
            yield
        self._before = (*self._before, *body.nodes)

    def __enter__(self) -> Self:
        _require_unused(self._recorder, self._body, self._name)
        self._context = self._recorder.body(is_repeated=True)
        self._body = self._context.__enter__()
        self._recorder.counters.add(self.count)
        return self

    def __exit__(self, *problem: Any) -> None:
        body = self._body
        assert body is not None, "the `with` has begun"
        self._recorder.counters.discard(self.count)
        self._context.__exit__(*problem)
        if problem[0] is None:
            self._recorder.add(
                LoopDraft(
                    self._name, self._predicate, self._before, body.nodes, self._carry, self.count,
                    self._at_most, self._line, self._recorder.newest,
                )
            )  # fmt: skip


class Case:
    """The recording of branches."""

    def __init__(
        self, recorder: Recorder, index: PredicateSpec, otherwise: Mapping[Any, Any], name: str
    ) -> None:
        self._recorder, self._index, self._otherwise = recorder, index, otherwise
        self._name, self._line = name, caller_line()
        self._body: Any = None
        self._branches: list[Sequence[Step | Draft]] = []

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Record the next branch; the first one is 0."""
        if self._body is None or not self._recorder.is_innermost(self._body):
            raise misuse(
                f"a branch of `{self._name}` is recorded outside of the case's own `with`",
                "write it there: `with plan.case_of(...) as case:`, `with case.branch():`",
            )
        with self._recorder.body() as body:
            yield
        self._branches.append(body.nodes)

    def __enter__(self) -> Self:
        _require_unused(self._recorder, self._body, self._name)
        self._context = self._recorder.body("is in no branch of the case")
        self._body = self._context.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._context.__exit__(*problem)
        if problem[0] is None:
            self._recorder.add(
                BranchDraft(
                    self._name, self._index, self._branches, self._otherwise, self._line,
                    self._recorder.newest,
                )
            )  # fmt: skip


def _require_unused(recorder: Recorder, body: Any, name: str) -> None:
    """Raise CdTypeError CD0868 where a loop or case is recorded twice, or after its plan."""
    if body is not None or RUNTIME.planned() is not recorder:
        what = "a second time" if body is not None else "after its plan has ended"
        raise misuse(f"`{name}` is recorded {what}", "make another one inside of the plan")


def require_counts(recorder: Recorder, spec: PredicateSpec) -> None:
    """Raise CdTypeError CD0868 for counts of loops that are not being recorded."""
    for read in spec.reads:
        if isinstance(read, Counter):
            recorder.require_open(read)


def pairs(given: Any, name: str) -> Mapping[Any, Any]:
    """Return pairs of tensors; raises CdTypeError CD0852 for anything but a mapping of them."""
    if given is not None and not isinstance(given, Mapping):
        raise wrong_argument("mapping of tensors", given, f"write one: `{name}={{x: y}}`")
    for each in (given or {}).items():
        for tensor in each:
            field_of(tensor)
    return given or {}
