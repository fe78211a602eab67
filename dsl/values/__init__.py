"""Values while a function is elaborated: types, arrays, the builder, ranges."""
