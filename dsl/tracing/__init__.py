"""The trace: every assignment recorded by the compiled code itself, read back, and asked."""
