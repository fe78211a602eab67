"""Run the tests: `python3 tests/start.py [what pytest takes]`. Sets everything up by itself."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from prepare import prepare, run  # the path above makes it importable

if __name__ == "__main__":
    prepare("test", "lint")
    # Hundreds of tests start Python: each would compile all that it imports, were it not kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as kept:
        os.environ.setdefault("PYTHONPYCACHEPREFIX", kept)
        run("-m", "pytest", "-n", "auto", *sys.argv[1:])
