"""What backends and code offer besides what all do, found without their classes."""

from __future__ import annotations

import numpy as np

from plusequals.backends import capabilities, registry

from .procedures import scale


def test_each_backend_has_what_it_implements() -> None:
    cc, cuda, numpy = (registry.get(name) for name in ("cc", "cuda", "numpy"))
    for offered in (
        capabilities.caller_library,
        capabilities.stored_code,
        capabilities.preparation,
    ):
        assert offered(cc) is cc
        assert offered(cuda) is None and offered(numpy) is None


def test_code_of_the_interpreter_is_called_by_python() -> None:
    code = registry.get("numpy").compile(scale())
    assert capabilities.direct_calls(code) is None
    assert capabilities.allocator(code) is np.empty
