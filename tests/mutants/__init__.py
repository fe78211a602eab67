"""Faults put into one module at a time, to see whether some test catches each: `python -m` this."""
