"""The user's persistent tensor: an identity with a label, and one array for each declared field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...lowering.diagnostic import CdTypeError, Diagnostic
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..interface import Array


class Tensor:
    """A persistent tensor: `value`, `grad` and what other fields were declared, all of one shape.

    Functions under `@cd` take it as an argument or capture it. On the host it is read by
    `numpy()` or `np.asarray` (a snapshot that never changes) and written by `t[...] = v` or
    `with t.edit() as a:`.
    """

    def __init__(self, label: str, value: Array, fields: Sequence[str], constant: bool) -> None:
        self.label = label
        self.constant = constant
        self._dtype = _element_type(value)
        names = ("value", "grad", *(name for name in fields if name not in ("value", "grad")))
        self._arrays = {name: np.zeros_like(value) for name in names}
        self._arrays["value"] = value

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, that of every field."""
        return self._arrays["value"].shape

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, `value` first."""
        return tuple(self._arrays)

    def array(self, field: str = "value") -> Array:
        """Return the array that holds a field: the memory that routines read and write."""
        return self._arrays[field]

    def numpy(self, field: str = "value") -> Array:
        """Return a read-only snapshot of a field, of the tensor's shape and dtype.

        Raises CdTypeError CD0803 for a field that was not declared.
        """
        if field not in self._arrays:
            raise CdTypeError(
                Diagnostic(
                    "CD0803", f"tensor `{self.label}` has no field `{field}`",
                    notes=(f"declared fields: {', '.join(self.fields)}",),
                    helps=(f"declare it: `pe.tensor(..., fields=({field!r},))`",),
                )
            )  # fmt: skip
        snapshot = self._arrays[field].copy()
        snapshot.flags.writeable = False
        return snapshot

    def __setitem__(self, index: Any, value: Any) -> None:
        self._writable()
        self._arrays["value"][index] = value

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __len__(self) -> int:
        return len(self._arrays["value"])

    @contextmanager
    def edit(self, field: str = "value") -> Iterator[Array]:
        """Give the array of a field to be written in place."""
        self._writable()
        yield self._arrays[field]

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"tensor {self.label}: {self._dtype.short}[{sizes}]"

    def _writable(self) -> None:
        if self.constant:
            raise CdTypeError(
                Diagnostic(
                    "CD0804", f"tensor `{self.label}` is constant and cannot be written",
                    helps=("make it without `constant=True`",),
                )
            )  # fmt: skip


def tensor(
    label: str,
    shape: Sequence[int] | int,
    dtype: Any = None,
    init: Any = None,
    fields: Sequence[str] = (),
    constant: bool = False,
) -> Tensor:
    """Return a persistent tensor of a shape; its value is `init` broadcast to it, or zeros.

    `dtype` is float32 unless given. `fields` are declared beside `value` and `grad`, as zeros.
    Raises CdTypeError CD0701 for an element type that is not one of the language's.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    element = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype or np.float32)
    value = np.zeros(sizes, element)
    if init is not None:
        value[...] = init(sizes) if callable(init) else init
    return Tensor(label, value, fields, constant)


def _element_type(value: Array) -> DType:
    found = dtypes.from_numpy(value.dtype)
    if found is None:
        raise CdTypeError(Diagnostic("CD0701", f"elements of type {value.dtype} are not supported"))
    return found
