"""Functions from program to program, one effect each; `pipeline.PASSES` says in which order."""
