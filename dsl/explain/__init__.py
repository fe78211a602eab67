"""Every decision of the compiler, as text and as a page."""
