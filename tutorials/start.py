"""Run a tutorial: `python3 tutorials/start.py [number] [arguments]`. Sets everything up by itself.

Without a number it runs the first, which trains a network that reads handwritten digits.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from prepare import prepare, run  # the path above makes it importable

HERE = Path(__file__).resolve().parent


def script(number: str) -> str:
    """Return the path of the tutorial with this number; ends the process where there is none."""
    found = sorted(HERE.glob(f"{int(number):02}_*.py"))
    if not found:
        names = ", ".join(path.name for path in sorted(HERE.glob("[0-9]*.py")))
        sys.exit(f"there is no tutorial {number}; there are {names}")
    return str(found[0])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    number = arguments.pop(0) if arguments and arguments[0].isdigit() else "1"
    chosen = script(number)
    prepare("tutorials")
    run(chosen, *arguments)
