"""Target-independent passes from program to program, in the order of `pipeline.PASSES`."""
