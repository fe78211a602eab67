"""What only a device shows of how memory, work and failures are shared with other packages."""
