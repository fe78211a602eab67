"""Mappings of loops to blocks and threads: which, where, and why."""
