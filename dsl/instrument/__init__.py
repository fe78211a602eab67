"""Instrumentation of assignments: checked mode, and the recording of traces."""
