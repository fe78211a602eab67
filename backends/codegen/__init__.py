"""Code generation: one traversal prints loops as C-like text; dialects are data."""
