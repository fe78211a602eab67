"""The kernels that set conditions of graphs, as text: see `csrc/conditions.h`.

They are no kernels of functions: they are compiled by themselves, when a loop or a branch of a plan
is captured for the first time, and kept with the code of functions.
"""

from __future__ import annotations

from pathlib import Path

from ..cache.folders import read_package_text

CONDITION_KERNELS = ("pe_go_on", "pe_choose")
"""The kernels of loops and of branches."""
ARGUMENT_COUNT = 8
"""The number of their arguments."""


def conditions_text() -> str:
    """Return the text of the kernels."""
    return read_package_text(str(Path(__file__).with_name("csrc") / "conditions.h"))
