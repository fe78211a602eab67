"""Contractions on devices: tiles in shared memory, tensor cores."""
