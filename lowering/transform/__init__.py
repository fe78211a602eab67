"""Loop transformations, each with its precondition, which the caller proves."""
