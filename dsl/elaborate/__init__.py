"""Surface to Typed: names, types, sizes and views resolved; both notations become one."""
