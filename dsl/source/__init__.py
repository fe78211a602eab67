"""Source: the text of a function, checks for stale source, parsing into the surface syntax."""
