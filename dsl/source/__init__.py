"""The text of a function, whether it is current, and its syntax as data."""
