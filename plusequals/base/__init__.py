"""What knows nothing of programs: diagnostics, settings, lazy imports, locks."""
