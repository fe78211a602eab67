"""Infrastructure independent of programs: diagnostics, settings, lazy imports, locks."""
