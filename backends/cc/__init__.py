"""C backend: finds a C compiler, runs it, and loads the compiled code."""
