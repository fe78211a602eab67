"""Public API: the decorator, the words of the language, comparison, profiling, data parallelism."""
