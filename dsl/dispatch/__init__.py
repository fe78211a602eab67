"""Dispatch of calls to compiled code: fast path, persistent cache, execution."""
