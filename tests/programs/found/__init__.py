"""Programs that were wrong once."""
