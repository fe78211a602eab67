"""Tests of the two IRs and their tools."""
