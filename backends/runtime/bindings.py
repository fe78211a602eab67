"""Bindings of a routine: default arguments by name.

>>> bound = Bindings("step", ("x", "rate"))
>>> bound["rate"] = 0.5
>>> bound
{'rate': 0.5}
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from ...base.diagnostic import CdNameError, Diagnostic, nearest


class Bindings(MutableMapping[str, Any]):
    """Values by the argument names of a routine; CdNameError CD0849 for any other name."""

    def __init__(self, routine: str, names: Sequence[str]) -> None:
        self._routine = routine
        self._names = tuple(names)
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._names:
            suggestion = nearest(name, self._names)
            raise CdNameError(
                Diagnostic(
                    "CD0849",
                    f"the routine `{self._routine}` takes no `{name}`",
                    notes=(f"it takes {', '.join(self._names) or 'nothing'}",),
                    helps=(f"did you mean `{suggestion}`?",) if suggestion else (),
                )
            )
        self._values[name] = value
