"""Workarounds of compiler bugs: one module for each kind."""
