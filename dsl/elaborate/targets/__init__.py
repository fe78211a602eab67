"""Targets of assignments and updates: the locations that they write."""
