"""Merge buffers: `p.grad.merge` is another stream's version of a field.

A routine may read one merged version of each field, and write none.
"""

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

    Raises CdNameError CD0831 for anything but a whole field of a tensor, and for one that is a
    merged version already.
    """
    node = array.body.node if isinstance(array.body, Read) else None
    path = _find_path(frame, array)
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


def _find_path(frame: Frame, array: Array) -> Path | None:
    """Return the path of the input that an array is, or is a view of."""
    node = array.body.node if isinstance(array.body, Read) else None
    return next(
        (path for path, input_node in frame.inputs.nodes.items() if input_node is node), None
    )


def of_a_field(frame: Frame, array: Array, name: str) -> str | None:
    """Return the spelling of a tensor's field that was looked up on the array of another field.

    `p.merge.grad` is `p.grad.merge`, `p.value.grad` is `p.grad`; None for other attributes.
    """
    path = _find_path(frame, array)
    owner = None if path is None else path.owner
    if path is None or owner is None or name not in frame.inputs.handles[owner].tensor.fields:
        return None
    merged = MERGED if str(path.steps[-1]).endswith(MERGED) else ""
    return _spell(Path(owner.root, (*owner.steps, f"@{name}{merged}"), owner.captured))


def check_merges(parameters: Mapping[Path, Parameter], body: tuple[Statement, ...]) -> None:
    """Raise CdTypeError CD0832 where a merged version is written, or two are read."""
    merged = [
        (path, parameter) for path, parameter in parameters.items()
        if path.steps and str(path.steps[-1]).endswith(MERGED)
    ]  # fmt: skip
    for path, parameter in merged:
        for statement in _simple_statements(body):
            if parameter.node in walk.writes((statement,)):
                raise error(
                    "CD0832", CdTypeError, f"`{_spell(path)}` is written, and a merge buffer may "
                    "only be read", statement.span,
                    helps=(f"write the field itself: `{_spell(path).removesuffix('.merge')}`",),
                )  # fmt: skip
    if len(merged) > 1:
        left, right = (_spell(path) for path, _ in merged[:2])
        first = next(
            statement for statement in _simple_statements(body)
            if merged[1][1].node in walk.reads((statement,))
        )  # fmt: skip
        raise error(
            "CD0832", CdTypeError, f"`{left}` and `{right}`: one routine merges one array",
            first.span, helps=("merge the second in a function of its own",),
        )  # fmt: skip


def _simple_statements(body: tuple[Statement, ...]) -> Iterator[_Simple]:
    """Yield the simple statements that access memory, nested ones included."""
    for statement in walk.statements(body):
        if isinstance(statement, _Simple):
            yield statement


def _spell(path: Path) -> str:
    """Return a path to a field in source notation: `p.grad.merge`."""
    *steps, last = path.steps
    name = str(last)[1:].replace("value.merge", "merge")
    return f"{Path(path.root, tuple(steps), path.captured)}.{name}"
