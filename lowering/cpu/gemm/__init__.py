"""Matrix products on CPUs: tiling, packing, blocking."""
