"""Tuned constants, each with its unit, the program it was tuned on, and what was measured."""

from __future__ import annotations

EXPANDED_BYTES = 1 << 30
"""Temporaries that each point has its own of may take so much of a device in all."""


WORTH = 8
"""A loop with at least so many rounds is worth being dealt out."""
