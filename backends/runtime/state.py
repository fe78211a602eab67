"""The one object that outlives calls: which backends are in use, and what they did so far."""

from __future__ import annotations

import os
import threading
from collections import Counter

from ...lowering import settings
from ...lowering.diagnostic import CdBackendError, Diagnostic
from ...lowering.ir.assignments import Procedure
from .. import registry
from ..interface import Backend, Code


class Runtime:
    """The backends in use and counts of what was compiled. Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backends: dict[str, Backend] = {}
        self._counts: Counter[str] = Counter()
        os.register_at_fork(after_in_child=self._after_fork)

    def backend(self, name: str | None = None) -> Backend:
        """Return the backend of a name, or of the settings; the same instance every time.

        Raises CdBackendError CD0801 where there is none, or it cannot run here.
        """
        name = name or settings.current().backend
        found = self._backends.get(name)
        if found is not None:
            return found
        made = registry.get(name)
        if why := made.unavailable():
            raise CdBackendError(
                Diagnostic(
                    "CD0801",
                    f"the backend `{name}` cannot run here: {why}",
                    helps=('backend="numpy" runs everywhere, slowly',),
                )
            )
        with self._lock:
            return self._backends.setdefault(name, made)

    def compile(self, procedure: Procedure, backend: str | None = None) -> Code:
        """Return code for a procedure, from memory or disk where it was compiled before."""
        code = self.backend(backend).compile(procedure)
        with self._lock:
            self._counts[code.origin] += 1
        return code

    def counts(self) -> dict[str, int]:
        """Return how many procedures came from where: `compiled`, `disk`, `memory`, ..."""
        with self._lock:
            return dict(self._counts)

    def _after_fork(self) -> None:
        """Replace the locks: in the parent a thread that the child lacks may hold them."""
        self._lock = threading.Lock()
        for backend in self._backends.values():
            backend.after_fork()


RUNTIME = Runtime()
"""The process's own. The only state of the package beside the settings."""
