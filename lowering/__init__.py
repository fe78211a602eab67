"""Lowering: two IRs and the passes between them; independent of devices, files and Python's ast."""
