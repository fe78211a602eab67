"""Findings as files: small programs that were wrong once, for `test_found` to run for ever."""

from __future__ import annotations

import hashlib
import importlib
import re
from dataclasses import fields, replace
from pathlib import Path

from .check import USUAL, Finding, check_all
from .isolate import Child, Crashed
from .model import ArgSpec, Program
from .reduce import reduced
from .warm_cache import check_sequences
from .ways import Ways

FOLDER = Path(__file__).parent / "found"


def finding_of(program: Program, ways: Ways = USUAL) -> Finding | None:
    """Return what is wrong about a program, crashes included."""
    try:
        found: Finding | None = Child(_finding, program, ways).result()
        return found
    except Crashed as why:
        return Finding("crash", str(why), program, ways)


def _finding(program: Program, ways: Ways) -> Finding | None:
    check = check_sequences if program.calls else check_all
    return check([program], ways)[0].finding


def kind_of(finding: Finding) -> tuple[str, str]:
    """Return what has to stay the same while a finding is made smaller."""
    told = re.match(r"(process \d+, call \d+: )?(result|argument) \d+: ", finding.why)
    if told:
        rest = finding.why[told.end() :]
        return finding.check, rest.split()[0] if rest[0] in "ds" else "values"
    return finding.check, re.sub(r"\W*[\d.]+\W*", " ", finding.why)[:60]


def smaller(finding: Finding) -> Finding:
    """Return the same finding about the smallest program found, in ways as usual as can be."""
    kind, isolated = kind_of(finding), finding.check in ("cc", "cuda", "crash")
    ways = replace(
        finding.ways,
        c=finding.ways.c and finding.check in ("cc", "crash", "warm"),
        cuda=finding.ways.cuda and finding.check in ("cuda", "crash"),
    )  # what is wrong may write anywhere
    best = finding

    def fails(program: Program) -> bool:
        nonlocal best
        try:
            found = finding_of(program, ways) if isolated else _finding(program, ways)
        except Exception:
            return False  # what the reducer made is no program
        if found is None or kind_of(found) != kind:
            return False
        best = found
        return True

    reduced(finding.program, fails)
    for field in fields(ways):  # one by one as usual, where it is found then, too
        changed = replace(ways, **{field.name: getattr(USUAL, field.name)})
        ways, before = changed, ways
        if changed == before or not fails(best.program):
            ways = before
    return replace(best, ways=replace(ways, c=finding.ways.c, cuda=finding.ways.cuda))


def write(finding: Finding, folder: Path = FOLDER) -> Path:
    """Write a finding as a module that holds its program; return the file."""
    program = finding.program
    digest = hashlib.sha256(program.text.encode()).hexdigest()[:6]
    path = folder / f"{finding.check}_{digest}.py"
    why = " ".join(finding.why.split()).replace("\\", "").replace('"', "'")[:85]
    args = "".join(f"        {_spec(spec)},\n" for spec in program.args)
    unusual = finding.ways != USUAL
    imported = ["from ..ways import Ways"] if unusual else []
    ways = (
        [f"WAYS = {finding.ways}".replace("(", "(\n    ").replace(")", ",\n)")] if unusual else []
    )
    lines = [
        f'"""{why}."""', "", "from ..model import ArgSpec, Program", *imported, "",
        "PROGRAM = Program(",
        f'    """{program.text.rstrip()}\n""",', "    (", args.rstrip(), "    ),",
        f"    reorders={program.reorders},", f"    rounds={program.rounds},", *_called(program),
        ")",
        *ways,
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _called(program: Program) -> list[str]:
    """Return the lines that say how a program is called several times."""
    if not program.calls:
        return []
    calls = (f"        ({', '.join(map(_spec, call))},)," for call in program.calls)
    fields = ("captured", program.captured), ("owned", program.owned)
    around = [
        "    {}=frozenset([{}]),".format(field, ", ".join(f'"{name}"' for name in sorted(names)))
        for field, names in fields if names
    ]  # fmt: skip
    return ["    calls=(", *calls, "    ),", f"    orders={program.orders},", *around]


def _spec(spec: ArgSpec) -> str:
    usual = ArgSpec("", "")
    parts = [f'"{spec.name}"', f'"{spec.dtype}"']
    for name in ("shape", "kind", "layout", "seed", "view"):
        value = getattr(spec, name)
        if value != getattr(usual, name):
            parts.append(f"{name}={value!r}".replace("'", '"'))
    return f"ArgSpec({', '.join(parts)})"


def stored() -> dict[str, tuple[Program, Ways, str | None]]:
    """Return every stored program by file name, its ways, and why where it is known to fail."""
    found = {}
    for path in sorted(FOLDER.glob("[a-z]*.py")):
        module = importlib.import_module(f"{__package__}.found.{path.stem}")
        ways = replace(getattr(module, "WAYS", USUAL), passes=True)
        found[path.stem] = module.PROGRAM, ways, getattr(module, "OPEN", None)
    return found
