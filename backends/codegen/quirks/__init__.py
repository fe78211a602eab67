"""What works around single compilers: one file for each kind of fault."""
