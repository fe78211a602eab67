"""Derivatives in calls: of functions that are derived, and those that the user wrote."""
