"""Arrays in device memory, ours and of other packages: layout, import, export, copies."""
