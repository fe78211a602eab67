"""Broken programs, what is said about each, and a fuzzer of more of them."""
