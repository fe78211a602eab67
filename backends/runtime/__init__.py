"""What runs when, on what memory."""
