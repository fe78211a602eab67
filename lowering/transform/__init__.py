"""Transformations of loops, each legal by itself; who calls them chooses where."""
