"""Target-independent passes; `pipeline.PASSES` has their order. Some files help others only."""
