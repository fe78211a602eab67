"""Any C compiler as a backend: find it, run it, load what it made."""
