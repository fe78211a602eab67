"""Faults that are injected on purpose: what must be a clear error or full recovery, never less.

    python -m tests.faults            all of them, as a table
    python -m tests.faults -k limits  those whose subject or name has the word

`rows` says what a fault is, the other files have them by subject.
"""
