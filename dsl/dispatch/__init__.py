"""From a call to its code: the fast path, the persistent cache, execution."""
