"""The passes in order, by their names, and the modules that their first runs import."""

from __future__ import annotations

from types import ModuleType

import pytest

from plusequals.base.lazy_import import LazyFunction
from plusequals.lowering import pass_table
from plusequals.lowering.gpu import passes


@pytest.mark.parametrize("module", [pass_table, passes])
def test_a_pass_is_named_as_its_function(module: ModuleType) -> None:
    for step in module.PASSES if module is pass_table else module.GPU_PASSES:
        name = step.name.rstrip(" 0123456789")
        assert hasattr(module, f"_{name}") or hasattr(module, name), step.name


def test_lazy_passes_are_functions_of_their_modules() -> None:
    lazy = {key: one for key, one in vars(pass_table).items() if isinstance(one, LazyFunction)}
    assert len(lazy) > 30
    for name, proxy in lazy.items():
        expected = "scalarize_complex" if name == "complex_to_pairs" else name
        assert proxy.resolve().__name__ == expected, name
