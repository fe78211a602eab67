"""Target-independent passes; `pass_table.PASSES` has their order. Some files help others only."""
