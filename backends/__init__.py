"""Backends: code generation, compilation, caching, loading, and execution of programs."""
