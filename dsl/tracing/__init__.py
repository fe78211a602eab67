"""Traces: queries and renderings of the assignments that instrumented code recorded."""
