"""Schedules for CPUs: which transformation is applied, where, and why."""
