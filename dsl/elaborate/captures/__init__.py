"""What functions bring along: arguments, captured objects, their owners."""
