"""Programs as text: one walk from loops to C, dialects as data, a prelude of small pieces."""
