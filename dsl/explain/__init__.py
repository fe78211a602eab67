"""Explanations of compiler decisions, as text and as an HTML page."""
