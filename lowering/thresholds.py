"""Tuned constants, each with its unit, the program it was tuned on, and what was measured."""

from __future__ import annotations

MAX_EXPANDED_BYTES = 1 << 30
"""Temporaries that are expanded by a copy for each point may take so much of a device in all."""


MIN_DISTRIBUTED_ITERATIONS = 8
"""A loop with at least so many iterations is worth distributing over threads."""
