"""The tool itself: which faults it makes, that they reach who imported, and one short run."""

from __future__ import annotations

import ast
import subprocess
import sys
from types import ModuleType

import pytest

from .equivalent import Equivalent, equivalents
from .install import function_of, install
from .mutate import mutants
from .targets import KINDS, ROOT, TARGETS, TRAPS_OF

TEXT = '''
"""A module."""
LIMIT = 3

def smallest(a: int, b: list[int]) -> bool:
    """Whether it is."""
    assert b, "there has to be one"
    if not b or a > 1:
        return False
    b.append(min(a, LIMIT))
    return all(a <= one for one in b if one)

class Box:
    size: int = 1

    @property
    def area(self) -> int | None:
        return self.size * 2
'''
MADE = """
LIMIT = 4
LIMIT = 2
return True
return False
pass
if not (not b or a > 1):
if not b and a > 1:
if a > 1:
if not b:
if b or a > 1:
if not b or a >= 1:
if not b or a > 2:
if not b or a > 0:
return True
pass
b.append(max(a, LIMIT))
b.append(min(LIMIT, a))
return any((a <= one for one in b if one))
return all((a < one for one in b if one))
return all((a <= one for one in b))
return 0
return None
return self.size
return self.size * 3
return self.size * 1
"""


def test_every_small_fault_is_made_once() -> None:
    made = mutants(TEXT)
    assert [one.new for one in made] == MADE.strip().splitlines()
    assert {one.function for one in made} == {"", "smallest", "Box.area"}
    assert all(ast.unparse(one.tree) for one in made)
    assert made[5].diff == "-if not b or a > 1:\n+if not (not b or a > 1):"
    assert TEXT.splitlines()[made[5].lines.start - 1].strip() == made[5].old


def test_a_fault_reaches_who_imported_the_function() -> None:
    module, user = ModuleType("mutated_here"), ModuleType("user_of_it")
    exec(compile(TEXT, "mutated_here", "exec"), vars(module))
    user.smallest, user.LIMIT = module.smallest, module.LIMIT  # type: ignore[attr-defined]
    by_line = {one.new: one for one in mutants(TEXT)}
    assert not user.smallest(2, [5])
    install(module, by_line["if not b or a > 2:"])
    assert user.smallest(2, [5])
    install(module, by_line["return self.size * 3"])
    assert module.Box().area == 3
    assert function_of(module, "Box.area").__name__ == "area"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "user_of_it", user)
        patch.setitem(sys.modules, "mutated_here", module)
        install(module, by_line["LIMIT = 4"])
    assert (module.LIMIT, user.LIMIT) == (4, 4)


def test_what_is_equivalent_is_told_apart() -> None:
    one = next(made for made in mutants(TEXT) if made.new == "if not b or a > 2:")
    assert Equivalent("smallest", "a > 2", "why").matches(one)
    assert Equivalent("smallest", "", "why", old="a > 1").matches(one)
    assert not Equivalent("smallest", "a > 3", "why").matches(one)
    assert not Equivalent("Box.area", "", "why").matches(one)
    assert all(len(one.reason.split()) > 2 for name in TARGETS for one in equivalents(name))


def test_traps_are_of_kinds_that_there_are() -> None:
    assert {kind for kinds in TRAPS_OF.values() for kind in kinds} == KINDS
    assert TRAPS_OF.keys() <= TARGETS.keys()


@pytest.mark.skipif(sys.platform == "win32", reason="each fault runs in a fork")
@pytest.mark.slow
def test_a_run_counts_what_the_tests_catch() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.mutants",
        "--module",
        "product_loops",
        "--function",
        "_under",
    ]
    command += ["--tests", "tests/lowering/analysis/test_product_loops.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    row = done.stdout.strip().splitlines()[-1].split()
    assert row[0] == "lowering/analysis/product_loops"
    assert row[1] == row[2] == row[4], "all faults are tried and caught"
