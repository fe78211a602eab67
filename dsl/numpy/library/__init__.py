"""Library definitions: functions of NumPy written in the language itself."""
