"""Assignments that check or record others: checked mode, traces."""
