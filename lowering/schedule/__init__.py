"""Shapes of loops that run faster and mean the same: what is legal, and what is chosen."""
