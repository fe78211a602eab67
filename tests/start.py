"""Run the tests: `python3 tests/start.py [what pytest takes]`. Sets everything up by itself."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from prepare import prepare, run  # the path above makes it importable

if __name__ == "__main__":
    prepare("test", "lint")
    run("-m", "pytest", "-n", "auto", *sys.argv[1:])
