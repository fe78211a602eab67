"""Analyses: results about programs and loops as values; no program is changed."""
