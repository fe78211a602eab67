"""Values during elaboration: types, arrays, the IR builder, range analysis."""
