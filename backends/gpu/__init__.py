"""What any backend for devices needs: memory, streams, arrays; names no vendor's driver."""
