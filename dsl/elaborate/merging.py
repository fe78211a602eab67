"""`p.grad.merge`: another stream's version of a field, which one routine may read of one field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...base.diagnostic import CdNameError, CdTypeError, Span
from ...lowering.ir import walk
from ...lowering.ir.assignments import (
    Alloc,
    Assign,
    Check,
    Let,
    Parameter,
    Permute,
    Print,
    Statement,
)
from ...lowering.ir.expressions import Read
from ...lowering.ir.indexing import var
from ..values.builder import error
from ..values.values import Array, Path
from .captures.inputs import MERGED
from .scope import Frame

_Simple = Assign | Let | Alloc | Permute | Check | Print


def merge_of(frame: Frame, array: Array, span: Span) -> Array:
    """Return the merged version of a field.

    Raises CdNameError CD0831 for what is no whole field of a tensor, or is one in the merge buffer.
    """
    node = array.body.node if isinstance(array.body, Read) else None
    path = _path_of(frame, array)
    last = "" if path is None or not path.steps else str(path.steps[-1])
    if (
        path is None
        or node is None
        or not last.startswith("@")
        or array.body != Read(node, tuple(map(var, array.axes)))
    ):
        raise error(
            "CD0831", CdNameError, "only a field of a tensor has a version to merge", span,
            helps=("make it a tensor, `p = pe.tensor(...)`, and read `p.merge` or `p.grad.merge`",),
        )  # fmt: skip
    if last.endswith(MERGED):
        raise error(
            "CD0831", CdNameError, "what is in the merge buffer has no `.merge` of its own", span,
            helps=(f"write it once: `{span.text.removesuffix('.merge')}`",),
        )  # fmt: skip
    owner = Path(path.root, path.steps[:-1], path.captured)
    handle = frame.inputs.handles[owner]  # a path to a field goes through its tensor
    return frame.inputs.field(frame.ctx, handle, last[1:], span, merged=True)


def _path_of(frame: Frame, array: Array) -> Path | None:
    """Return the path of the input that an array is, or is a part of."""
    node = array.body.node if isinstance(array.body, Read) else None
    return next((path for path, known in frame.inputs.nodes.items() if known is node), None)


def of_a_field(frame: Frame, array: Array, name: str) -> str | None:
    """Return how a field of a tensor is written that was asked of the array of another field.

    `p.merge.grad` is `p.grad.merge`, `p.value.grad` is `p.grad`; None for what is no such thing.
    """
    path = _path_of(frame, array)
    owner = None if path is None else path.owner
    if path is None or owner is None or name not in frame.inputs.handles[owner].tensor.fields:
        return None
    merged = MERGED if str(path.steps[-1]).endswith(MERGED) else ""
    return _shown(Path(owner.root, (*owner.steps, f"@{name}{merged}"), owner.captured))


def check_merges(parameters: Mapping[Path, Parameter], body: tuple[Statement, ...]) -> None:
    """Raise CdTypeError CD0832 where a merged version is written, or there are two of them."""
    merged = [
        (path, parameter) for path, parameter in parameters.items()
        if path.steps and str(path.steps[-1]).endswith(MERGED)
    ]  # fmt: skip
    for path, parameter in merged:
        for statement in _simple(body):
            if parameter.node in walk.writes((statement,)):
                raise error(
                    "CD0832", CdTypeError, f"`{_shown(path)}` is written, and a merge buffer may "
                    "only be read", statement.span,
                    helps=(f"write the field itself: `{_shown(path).removesuffix('.merge')}`",),
                )  # fmt: skip
    if len(merged) > 1:
        one, two = (_shown(path) for path, _ in merged[:2])
        first = next(
            statement for statement in _simple(body)
            if merged[1][1].node in walk.reads((statement,))
        )  # fmt: skip
        raise error(
            "CD0832", CdTypeError, f"`{one}` and `{two}`: one routine merges one array",
            first.span, helps=("merge the second in a function of its own",),
        )  # fmt: skip


def _simple(body: tuple[Statement, ...]) -> Iterator[_Simple]:
    """Yield the statements that read or write by themselves, those inside others included."""
    for statement in walk.statements(body):
        if isinstance(statement, _Simple):
            yield statement


def _shown(path: Path) -> str:
    """Return a path to a field as it is written: `p.grad.merge`."""
    *steps, last = path.steps
    name = str(last)[1:].replace("value.merge", "merge")
    return f"{Path(path.root, tuple(steps), path.captured)}.{name}"
