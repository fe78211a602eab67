"""Specialization cache of a function: signatures, guards, dynamic sizes, layouts."""
