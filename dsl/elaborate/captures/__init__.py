"""Inputs of functions: arguments, captured objects and their owners."""
