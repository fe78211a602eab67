"""The replay corpus: what the compiler makes of many programs, recorded and compared."""
