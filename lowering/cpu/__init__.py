"""Schedules for processors: which transformation, where, and why."""
