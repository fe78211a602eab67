"""Contractions on devices: register and shared-memory tiling, tensor cores, split-k."""
