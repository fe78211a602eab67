"""Analyses: values about programs, which change nothing."""
