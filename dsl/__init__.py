"""The front door: source to assignments, the callable, and what people read of it."""
