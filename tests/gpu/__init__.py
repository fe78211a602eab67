"""What is done on a machine with a GPU: tests, sanitizers, and the benchmark; see `__main__`."""
