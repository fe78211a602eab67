"""`python3 -m benchmarks`: measure plusequals beside other libraries. Sets everything up by itself.

`--help` lists what can be chosen; docs/performance.md says how to read what comes out.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("numpy", "cffi", "platformdirs", "rich", "matplotlib")


def main() -> int:
    """Run here where all that is needed is there, else in the checkout's own environment."""
    if all(map(find_spec, NEEDED)):
        from .command import main as measure

        return measure(sys.argv[1:])
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))
    prepare = import_module("prepare")  # which needs nothing that is not there
    prepare.prepare("benchmarks")
    prepare.run("-m", "benchmarks", *sys.argv[1:])
    return 1


if __name__ == "__main__":
    sys.exit(main())
