"""Comparisons and tests: of items and their identity, and what ends `any` and `all`."""
