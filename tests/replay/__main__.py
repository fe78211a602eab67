"""What the compiler makes of many programs, recorded, and compared with what it makes later.

    python -m tests.replay record INTO --programs 2000 --jobs 2    the corpus, by the code as it is
    python -m tests.replay compare BEFORE                          with the code as it is by now
    python -m tests.replay compare BEFORE AFTER                    of two recordings
    python -m tests.replay fires RECORDING                         which passes change how much

Nothing is compiled or run. The targets are fixed, so that any machine records the same. `record`
goes on with a recording that was interrupted. `--renamed fuse=join` says that a pass, a
mapping or an outcome has another name, `--words lanes=simd` that a word of the printed loops has.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .compare import Rules, compare
from .fires import fires
from .record import record, same, whole
from .store import Recording, Unreadable


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 for a difference or failure, 2 without a recording."""
    parser = argparse.ArgumentParser("python -m tests.replay", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record", help="record the corpus")
    one.add_argument("into", type=Path)
    one.add_argument("--programs", type=int, default=2000, help="random ones")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--jobs", type=int, default=1)
    one.add_argument("--only", default="", help="programs whose name begins like this")
    one.set_defaults(run=_record)
    two = commands.add_parser("compare", help="compare a recording with another, or with the code")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path, nargs="?")
    two.add_argument("--jobs", type=int, default=1)
    two.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW")
    two.add_argument("--words", action="append", default=[], metavar="OLD=NEW")
    two.add_argument("--each", type=int, default=1, help="differences that are shown of a place")
    two.set_defaults(run=_compare)
    three = commands.add_parser("fires", help="print which passes and mappings fire on what")
    three.add_argument("recording", type=Path)
    three.add_argument("--on", default="", help="list the programs that this pass changes")
    three.set_defaults(run=_fires)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except Unreadable as why:
        print(why, file=sys.stderr)
        return 2
    return status


def _record(options: argparse.Namespace) -> int:
    every = whole(options.programs, options.seed)
    wanted = [one for one in every if one.name.startswith(options.only)]
    asked = f"{options.programs} of seed {options.seed}, {options.only or 'all'}"
    counts = record(wanted, options.into, options.jobs, asked=asked)
    print(counts)
    for failed in counts.failed:
        print(f"  failed: {failed}")
    return 1 if counts.failed else 0


def _compare(options: argparse.Namespace) -> int:
    rules = Rules(_table(options.renamed), _table(options.words))
    before = Recording(options.before)
    if options.after is not None:
        found = compare(before, Recording(options.after), rules, options.each)
    else:
        with tempfile.TemporaryDirectory(prefix="plusequals-replay-") as folder:
            record(same(before), Path(folder), options.jobs)
            found = compare(before, Recording(Path(folder)), rules, options.each)
    print(found)
    return 0 if found.is_equal else 1


def _fires(options: argparse.Namespace) -> int:
    found = fires(Recording(options.recording))
    print("\n".join(found.on(options.on)) if options.on else found)
    return 0


def _table(given: Sequence[str]) -> dict[str, str]:
    return {old: new for old, _, new in (one.partition("=") for one in given)}


if __name__ == "__main__":
    sys.exit(main())
