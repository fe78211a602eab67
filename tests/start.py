"""Run the tests: `python3 tests/start.py [what pytest takes]`. Sets everything up by itself."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from prepare import HOME, prepare, run  # the path above makes it importable

if __name__ == "__main__":
    prepare("test", "lint")
    # Hundreds of tests start Python, and each worker rewrites what is asserted: each would compile
    # all that it imports, were it not kept. What tests themselves wrote is not kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    kept = HOME / "pycache"
    written = Path(tempfile.gettempdir()).resolve()
    shutil.rmtree(kept / written.relative_to(written.anchor), ignore_errors=True)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(kept))
    run("-m", "pytest", "-n", "auto", *sys.argv[1:])
