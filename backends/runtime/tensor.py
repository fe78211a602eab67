"""Persistent tensors of the user: a label, and one array for each declared field."""

from __future__ import annotations

import keyword
import linecache
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Literal

import numpy as np

from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic, Label, Source, Span
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.memory_mode import (
    HOSTED_CONSTANT,
    LOCAL,
    VIRTUAL,
    Decision,
    Request,
    join,
    parse_mode,
)
from ..interface import Array
from .field import Field
from .host_writes import NoInPlaceOperators
from .initial_values import first_value

_PACKAGE = __name__.partition(".")[0]


def memory_request(
    label: str, memory: str | None, is_constant: bool, has_value: bool
) -> Decision | None:
    """Return the memory request of a new tensor, None where there is none.

    Raises CdValueError CD0573 for an unknown mode, CdTypeError CD0571 or CD0575 where the tensor
    cannot be constant, or have a value, in that mode.
    """
    location = _caller()
    if memory is None:
        constant = Request(HOSTED_CONSTANT, f"`{label}` was made with constant=True", location)
        return join(None, constant) if is_constant else None
    mode = parse_mode(memory, location)
    request = join(None, Request(mode, f"`{label}` was made with memory={memory!r}", location))
    if is_constant:
        request = join(
            request, Request(HOSTED_CONSTANT, "it is constant", location), f"tensor `{label}`"
        )
    if is_transient(request) and has_value:
        raise CdTypeError(
            Diagnostic(
                "CD0575", f"tensor `{label}` is {mode}: it has no array that `init` could fill",
                (Label(location, f"asks for {mode}"),),
                helps=("leave out `init`: it is zeros at the start of every call",),
            )
        )  # fmt: skip
    return request


def is_transient(asked: Decision | None) -> bool:
    """Return whether a tensor is transient: it has an array during calls at most."""
    return asked is not None and asked.mode in (VIRTUAL, LOCAL)


def no_host_array(label: str, asked: Decision) -> CdTypeError:
    """Return the error CD0575 of reading or writing a transient tensor on the host."""
    return CdTypeError(
        Diagnostic(
            "CD0575", f"tensor `{label}` is {asked.mode}: between calls it has no array",
            (Label(asked.requests[-1].span, f"asks for {asked.mode}"),),
            helps=(
                "make it without `memory=`, or have the function write what you want to see to "
                "another array",
            ),
        )
    )  # fmt: skip


def _caller() -> Span:
    """Return the source line that called the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        frame = frame.f_back
    name, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("?", 1)
    text = linecache.getline(name, line).rstrip()
    start = len(text) - len(text.lstrip())
    return Span(Source(name, line, text), line, start, line, max(len(text), start + 1))


class Tensor(NoInPlaceOperators):
    """A persistent tensor: `value`, `grad` and other declared fields, all of one shape.

    Functions under `@cd` take it as an argument or capture it. On the host it is read by
    `numpy()` or `np.asarray` (an immutable snapshot) and written by `t[...] = v` or
    `with t.edit() as a:`. A copy, also by pickling, is a separate tensor with the same label.
    """

    _SHOWN = (
        "constant", "dtype", "edit", "field", "fields", "label", "memory", "numpy", "shape",
    )  # fmt: skip

    def __init__(self, label: str, value: Array, fields: Sequence[str], constant: bool) -> None:
        self.label = label
        self.constant = constant
        dtype = _element_type(value)
        names = ("value", "grad", *(name for name in fields if name not in ("value", "grad")))
        arrays = (value if name == "value" else np.zeros_like(value) for name in names)
        self._fields = {
            name: Field(label, name, array, dtype, constant)
            for name, array in zip(names, arrays, strict=True)
        }
        for field in self._fields.values():
            field.tensor = self
        self._value = self._fields["value"]
        self.layout = dtype, value.shape, names
        """Its element type, shape, and names of fields, all immutable."""

    request: Decision | None = None
    """The memory request, None where there is none."""

    def given(self, is_given: bool) -> None:
        """Record whether the user gave an initial value."""
        self._value.is_given = is_given

    @property
    def memory(self) -> str:
        """The requested memory mode, "" where there is none."""
        return "" if self.request is None else str(self.request.mode)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.layout[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, that of every field."""
        return self.layout[1]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, `value` first."""
        return self.layout[2]

    def field(self, name: str = "value") -> Field:
        """Return a field; raises CdTypeError CD0803 for one that was not declared."""
        field = self._fields.get(name)
        if field is None:
            raise CdTypeError(
                Diagnostic(
                    "CD0803", f"tensor `{self.label}` has no field `{name}`",
                    notes=(f"declared fields: {', '.join(self.fields)}",),
                    helps=(f"declare it: `pe.tensor(..., fields=({name!r},))`",),
                )
            )  # fmt: skip
        return field

    def __getattr__(self, name: str) -> Field:
        if "_fields" not in self.__dict__:  # during construction
            raise AttributeError(name)
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(
                f"tensor `{self.label}` has no field or attribute `{name}`; "
                f"its fields are {', '.join(self._fields)}"
            )
        return self._fields[name]

    def array(
        self, field: str = "value", use: Literal["read", "write", "identity"] = "read"
    ) -> Array | None:
        """Return the array that a plain call reads or writes: the newest version of a field.

        For `identity` it is the host's array, of any version, and None for a merge buffer.

        Raises CdValueError CD0844 for a merge buffer, which plain calls do not have.
        """
        stored_field = self._fields.get(field)
        if use == "identity":
            return None if stored_field is None else stored_field.host.array
        if stored_field is not None:
            return stored_field.shown(writing=use == "write")
        raise CdValueError(
            Diagnostic(
                "CD0844", f"`{self.label}.{field}` is in the merge buffer of a stream, and a plain "
                "call has none",
                helps=(
                    "compile and link the function, then `source.merge_into(routine, "
                    f"{self.label}.{field.removesuffix('.merge')})`",
                ),
            )
        )  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_fields", ()):
            self._fields[name][...] = value  # in place, as in a function
        else:
            object.__setattr__(self, name, value)

    def numpy(self, field: str = "value") -> Array:
        """Return a read-only snapshot of a field, of the tensor's shape and dtype.

        Raises CdTypeError CD0803 for a field that was not declared.
        """
        return self.field(field).numpy()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._value[index] = value

    def __getitem__(self, index: Any) -> Any:
        return self._value[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._value.__array__(dtype, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.field().__dlpack__(**options)

    def __len__(self) -> int:
        return len(self._value)

    def __dir__(self) -> list[str]:
        return sorted((*super().__dir__(), *self._fields))

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = {name: field.numpy() for name, field in self._fields.items()}
        is_given = not self._value.is_blank
        return _copied, (type(self), self.label, arrays, self.constant, self.request, is_given)

    def edit(self, field: str = "value") -> AbstractContextManager[Array]:
        """Return a context manager of a field's array for writing: `with p.edit() as a:`."""
        return self.field(field).edit()

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"tensor {self.label}: {self.dtype.short}[{sizes}]"


class FleetingTensor(Tensor):
    """A transient tensor, virtual or local: zeros at the start of each call, no array between."""

    def field(self, name: str = "value") -> Field:
        """Raise CdTypeError CD0575: no field has an array on the host."""
        assert self.request is not None, "that is what makes it fleeting"
        raise no_host_array(self.label, self.request)

    def __getattr__(self, name: str) -> Field:
        if name.startswith("_") or name not in self._fields:
            return super().__getattr__(name)
        return self.field(name)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.field()

    def __getitem__(self, index: Any) -> Any:
        return self.field()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.field().numpy()


def tensor(
    label: str,
    shape: Sequence[int] | int,
    dtype: Any = None,
    init: Any = None,
    fields: Sequence[str] = (),
    constant: bool = False,
    memory: str | None = None,
) -> Tensor:
    """Return a persistent tensor of a shape; its value is `init` broadcast to it, or zeros.

    `dtype` is float32 unless given. `fields` are declared beside `value` and `grad`, as zeros.
    `memory` requests a memory mode, such as `"on-device"` or `"virtual"`: every function that uses
    the tensor honours it or is rejected. Raises CdTypeError CD0571 or CD0575 where other arguments
    exclude that mode, CdValueError CD0573 for an unknown mode, CdTypeError CD0701 for an
    unsupported element type, CdTypeError or CdValueError CD0860 for other invalid arguments.
    """
    _require_names(label, fields)
    value = first_value(label, shape, dtype, init)
    request = memory_request(label, memory, constant, init is not None)
    result = (FleetingTensor if is_transient(request) else Tensor)(label, value, fields, constant)
    result.request = request
    result.given(init is not None)
    return result


def _copied(
    kind: type[Tensor],
    label: str,
    arrays: Mapping[str, Array],
    constant: bool,
    request: Decision | None,
    is_given: bool,
) -> Tensor:
    """Return a new tensor with initial arrays: the reconstructor of copies and pickles."""
    copy = kind(label, np.array(arrays["value"]), tuple(arrays), constant)
    for name, field in copy._fields.items():
        np.copyto(field.host.array, arrays[name])
    copy.request = request
    copy.given(is_given)
    return copy


_RESERVED = ("label", "constant", "layout", "merge")


def _require_names(label: object, fields: Sequence[str]) -> None:
    """Raise CdValueError CD0857 for an invalid label or field name."""
    why = ""
    if not isinstance(label, str) or not label or not label.isprintable():
        why = f"a tensor cannot be labelled {label!r}"
    for at, name in enumerate(fields):
        if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
            why = f"a field cannot be called {name!r}"
        elif name in ("value", "grad"):
            continue
        elif name in _RESERVED or hasattr(Tensor, name) or name in fields[:at]:
            why = f"a field cannot be called `{name}`: that is there already"
    if why:
        helps = ('labels are printable text, fields are names: `fields=("velocity",)`',)
        raise CdValueError(Diagnostic("CD0857", why, helps=helps))


def _element_type(value: Array) -> DType:
    dtype = dtypes.from_numpy(value.dtype)
    if dtype is None:
        raise CdTypeError(Diagnostic("CD0701", f"elements of type {value.dtype} are not supported"))
    return dtype
