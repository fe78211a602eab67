"""The vocabulary, two IRs, and the passes between them; knows no device, no file, no Python ast."""
