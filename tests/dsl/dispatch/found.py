"""Calls that are found on disk: the head of written modules, and whether a call compiled."""

from __future__ import annotations

from typing import Any

HEAD = "import numpy as np\nfrom plusequals import cd\n"


def is_found(function: Any) -> bool:
    """Whether the calls so far compiled nothing."""
    return "_forms" not in vars(function)
