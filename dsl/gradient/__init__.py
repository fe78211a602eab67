"""Gradients of functions, as source text in the language."""
