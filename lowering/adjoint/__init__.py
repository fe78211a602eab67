"""Reverse-mode differentiation of assignments."""
