"""Loop transformations, each legal by its own precondition; callers choose where to apply them."""
