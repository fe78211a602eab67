"""The sources keep to the plan of the house: directions of imports, sizes, words, tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from token import NAME

from tests.house import (
    APART,
    CALLERS,
    CONCRETE,
    FILE_LINES,
    FOLDER_FILES,
    FUNCTION_LINES,
    LAYERS,
    LAZY_PACKAGES,
    LINE_LENGTH,
    LONG_FILES,
    LONG_FUNCTIONS,
    PRIVATE_WORDS,
    SHORT_FILES,
    TUTORIAL_LINES,
    WITHOUT_TESTS,
)

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("dsl", "backends", "lowering")

# ---------------------------------------------------------------- what is there


@cache
def sources() -> tuple[str, ...]:
    """Every source file of the package, relative to the root."""
    found = [path for floor in FLOORS for path in (ROOT / floor).rglob("*.py")]
    found += (ROOT / "plusequals").glob("*.py")
    found += (ROOT / "plusequals" / "base").rglob("*.py")
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


@cache
def benchmarks() -> tuple[str, ...]:
    """Every file of the floor above the package, which nobody imports."""
    found = (ROOT / "benchmarks").rglob("*.py")
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


@cache
def scripts() -> tuple[str, ...]:
    """Every other Python file of the repository."""
    folders = ("tests", "tutorials", "benchmarks", ".ci")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def lines(path: str) -> list[str]:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


@cache
def layer(path: str) -> int:
    """The layer of a file, 0 at the bottom."""
    levels = {room: -at for at, rooms in enumerate(LAYERS) for room in rooms.split()}
    parts = path.removesuffix(".py").split("/")
    rooms = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next(levels[room] for room in rooms if room in levels)


def imports(path: str) -> Iterator[tuple[int, str]]:
    """Each file of the package that a file imports, with the line."""
    parts = Path(path).with_suffix("").parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level:
                package = parts[1:] if parts[0] == "plusequals" else parts
                base = [*package[: len(package) - node.level], *module]
            elif module[:1] == ["plusequals"]:
                base = module[1:]
            else:
                continue
            for alias in node.names:
                yield (
                    node.lineno,
                    _file_of([*base, alias.name]) or _file_of(base) or "what is not there",
                )


def _file_of(parts: list[str]) -> str | None:
    """The file of a module of the package, None where there is no such module."""
    if not parts:
        return "plusequals/__init__.py"
    path = "/".join(parts)
    for candidate in (f"{path}.py", f"{path}/__init__.py", f"plusequals/{path}.py"):
        if (ROOT / candidate).is_file():
            return candidate
    return None


def functions(path: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Each function with its dotted name; those inside functions are part of them."""

    def inside(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child
            elif isinstance(child, ast.ClassDef):
                yield from inside(child, f"{prefix}{child.name}.")
            else:
                yield from inside(child, prefix)

    return inside(tree(path), "")


# ---------------------------------------------------------------- imports


def test_imports_run_downwards() -> None:
    wrong = [
        f"{path}:{line} imports {target}, which is above it"
        for path in [*sources(), *benchmarks()]
        for line, target in sorted(set(imports(path)))
        if layer(target) > layer(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_files_import_each_other() -> None:
    below = {path: {file for _, file in imports(path)} for path in [*sources(), *benchmarks()]}
    try:
        TopologicalSorter(below).prepare()
        circle: list[str] = []
    except CycleError as error:
        circle = error.args[1]
    assert not circle, " imports ".join(reversed(circle))


def test_folders_of_one_subject_leave_each_other_alone() -> None:
    wrong = [
        f"{path}:{line} imports {target}"
        for one, other in (*APART, *(pair[::-1] for pair in APART))
        for path in sources()
        if path.startswith(f"{one}/")
        for line, target in imports(path)
        if target.startswith(f"{other}/")
    ]
    assert not wrong, "\n".join(wrong)


def test_callers_know_no_backend() -> None:
    callers = [path for path in sources() if path.startswith(tuple(f"{one}/" for one in CALLERS))]
    wrong = [
        f"{path}:{line} imports {target}"
        for path in callers
        for line, target in imports(path)
        if target.removesuffix(".py").startswith(CONCRETE)
    ]
    modules = "|".join(room.rpartition("/")[2] for room in CONCRETE)
    lazy = rf"(plusequals)?\.+(backends\.)?({modules})(\..*)?"
    named = re.compile(rf"cc|cuda|{lazy}")
    wrong += [
        f"{path}:{node.lineno} names {node.value!r}"
        for path in callers
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and named.fullmatch(node.value)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_pass_imports_no_other_pass() -> None:
    wrong = [
        f"{path}:{line} imports {target}"
        for path in sources()
        if path.startswith("lowering/passes/")
        for line, target in imports(path)
        if target.startswith("lowering/passes/")
    ]
    assert not wrong, "\n".join(wrong)


def test_no_folder_has_too_many_files() -> None:
    counts = Counter(str(Path(path).parent) for path in sources())
    full = {folder: count for folder, count in counts.items() if count > FOLDER_FILES + 1}
    assert not full, f"more than {FOLDER_FILES} files and `__init__`: {full}"


def test_no_second_copy_is_imported() -> None:
    bare = [
        f"{path}:{node.lineno} imports {name}; write plusequals.{name}"
        for path in [*sources(), *scripts()]
        for node in ast.walk(tree(path))
        for name in _absolute_names(node)
        if name.split(".")[0] in FLOORS
    ]
    assert not bare, "\n".join(bare)


def _absolute_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or ""]
    return []


def test_functions_import_only_optional_packages() -> None:
    wrong = [
        f"{path}:{node.lineno}"
        for path in sources()
        for _, function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not all(name.split(".")[0] in LAZY_PACKAGES for name in _absolute_names(node) or ["."])
    ]
    assert not wrong, f"imports inside functions: {wrong}"


def test_every_module_imports_by_itself_and_once() -> None:
    names = [path.removesuffix(".py").replace("/", ".") for path in sources()]
    names = [n if n.startswith("plusequals") else f"plusequals.{n}" for n in names]
    names = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {FLOORS!r} if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]", "a folder was imported beside plusequals as a second copy"


def test_this_process_has_no_second_copy() -> None:
    assert not [name for name in FLOORS if name in sys.modules]


# ---------------------------------------------------------------- sizes


def test_names_are_terms_of_the_field() -> None:
    private = [
        f"{path}: `{name}`, better: {PRIVATE_WORDS[word]}"
        for path in sources()
        for name in sorted(set(re.findall(r"[^\W\d]\w*", _code(path))))
        for word in re.findall(r"[a-z]+|[A-Z][a-z]*(?=[A-Z_]|$)", name.replace("_", " "))
        if word.lower() in PRIVATE_WORDS
    ]
    assert private == []


def _code(path: str) -> str:
    """The names of a file, without comments and texts."""
    with tokenize.open(ROOT / path) as file:
        names = [t.string for t in tokenize.generate_tokens(file.readline) if t.type == NAME]
    return " ".join(names)


def test_files_are_short() -> None:
    wrong = [
        f"{path} has {len(lines(path))} lines, {_file_limit(path)} are allowed"
        for path in [*sources(), *scripts()]
        if len(lines(path)) > _file_limit(path)
    ]
    assert not wrong, "\n".join(wrong)


def _file_limit(path: str) -> int:
    if re.match(r"tutorials/\d", path):
        return TUTORIAL_LINES
    return LONG_FILES.get(path, (SHORT_FILES.get(path, FILE_LINES), ""))[0]


def test_functions_are_short() -> None:
    wrong = []
    for path in [*sources(), *scripts()]:
        for name, function in functions(path):
            limit = LONG_FUNCTIONS.get(f"{path}::{name}", (FUNCTION_LINES, ""))[0]
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > limit:
                wrong.append(f"{path}::{name} has {length} lines, {limit} are allowed")
    assert not wrong, "\n".join(wrong)


def test_lines_are_short() -> None:
    paths = [*sources(), *scripts()]
    paths += [
        path.relative_to(ROOT).as_posix() for path in (ROOT / "backends").rglob("csrc/*.[ch]")
    ]
    wrong = [
        f"{path}:{number}"
        for path in paths
        for number, line in enumerate(lines(path), 1)
        if len(line) > LINE_LENGTH
    ]
    assert not wrong, f"longer than {LINE_LENGTH} columns: {wrong}"


def test_exceptions_are_still_needed() -> None:
    there = {*sources(), *scripts()}
    for path, (limit, _) in LONG_FILES.items():
        assert path not in there or limit > FILE_LINES
    for path in WITHOUT_TESTS:
        assert path not in there or not (ROOT / _test_of(path)).exists(), f"{path} has tests now"
    known = {f"{path}::{name}" for path in sources() for name, _ in functions(path)}
    assert set(LONG_FUNCTIONS) <= known


# ---------------------------------------------------------------- words


def test_modules_and_public_things_have_docstrings() -> None:
    missing = [f"{path}: {name}" for path in sources() for name in _undocumented(path)]
    assert not missing, "no docstring:\n" + "\n".join(missing)


def _undocumented(path: str) -> list[str]:
    missing = [] if ast.get_docstring(tree(path)) else ["the module itself"]
    for name, function in functions(path):
        private = any(part.startswith("_") for part in name.split("."))
        if not private and not ast.get_docstring(function) and not _is_overload(function):
            missing.append(name)
    for node in tree(path).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            missing += [] if ast.get_docstring(node) else [node.name]
    return missing


def _is_overload(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(getattr(mark, "id", "") == "overload" for mark in function.decorator_list)


def test_scripts_say_what_they_are() -> None:
    silent = [path for path in scripts() if lines(path) and not ast.get_docstring(tree(path))]
    assert not silent, f"no module docstring: {silent}"


def test_nothing_names_a_machine_or_a_registry() -> None:
    hosts = "|".join(
        f"{name}[.]org" for name in ("py" + "pi", "python" + "hosted", "ana" + "conda")
    )
    homes = "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers"))
    forbidden = re.compile(rf"({hosts})|(?<![\w.*}})])/({homes})/\w")
    wrong = [
        f"{path}:{number}: {line.strip()}"
        for path in _texts()
        for number, line in enumerate(lines(path), 1)
        if forbidden.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def _texts() -> list[str]:
    """All that people read: sources, C text, pages, configuration."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *(ROOT / "docs").rglob("*.md")]
    pages += [*(ROOT / ".ci").glob("*"), *(ROOT / "backends").rglob("csrc/*.[ch]")]
    found = [path.relative_to(ROOT).as_posix() for path in pages if path.is_file()]
    return sorted({*found, *sources(), *scripts()})


def test_links_of_pages_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", _prose(page))
        if not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def _prose(page: Path) -> str:
    """A page without its code, neither blocks nor words."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]+?`", "", text)


def test_no_function_changes_a_module() -> None:
    wrong = [
        f"{path}:{node.lineno}"
        for path in sources()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Global)
    ]
    assert not wrong, f"`global` statements: {wrong}"


def test_every_error_code_has_a_page_entry_and_every_entry_a_code() -> None:
    used = {
        node.value
        for path in sources()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"CD\d{4}", node.value)
    }
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    entries = re.findall(r"^#+ .*?(CD\d{4})", page, re.MULTILINE)
    assert sorted(used - set(entries)) == [], "codes without an entry in docs/errors.md"
    assert sorted(set(entries) - used) == [], "entries of docs/errors.md that nothing raises"
    assert len(entries) == len(set(entries)), "a code has two entries"


# ---------------------------------------------------------------- tests


def _test_of(path: str) -> str:
    return str(Path("tests", path).parent / f"test_{Path(path).name}")


def test_tests_mirror_the_tree() -> None:
    missing = [
        f"{path} has no {_test_of(path)}"
        for path in sources()
        if path.split("/")[0] in FLOORS and path not in WITHOUT_TESTS
        if list(functions(path)) and not (ROOT / _test_of(path)).is_file()
    ]
    assert not missing, "\n".join(missing)


def test_every_test_asserts_something() -> None:
    silent = [
        f"{path}::{name}"
        for path in scripts()
        if "/test_" in path
        for name, function in functions(path)
        if name.split(".")[-1].startswith("test_") and not _asserts(function, _helpers(path))
    ]
    assert not silent, "nothing is asserted in:\n" + "\n".join(silent)


@cache
def _helpers(path: str) -> frozenset[str]:
    """The functions of a file that assert something themselves."""
    return frozenset(name for name, function in functions(path) if _asserts(function, frozenset()))


def _asserts(function: ast.AST, helpers: frozenset[str]) -> bool:
    """Whether there is an assertion, or a call of something that makes one."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in helpers or re.match(
                r"_?(assert|same|check|raises|warns|refused|agree|golden)", name
            ):
                return True
    return False
