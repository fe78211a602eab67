"""From programs to code that runs: emit, compile, cache, load, call."""
