"""Vendor-independent device support: memory pool, staging, streams, device arrays."""
