"""What a program gives: texts that are hostile, sources that change, arrays changed in place."""

from __future__ import annotations

from pathlib import Path

from tests.faults.rows import ROOT, Row


def _row(name: str, subject: str = "text", **more: object) -> Row:
    return Row(subject=subject, name=name, **more)  # type: ignore[arg-type]


def _module(text: str) -> str:
    return (
        f"open(FOLDER + '/made.py', 'w', encoding='utf-8').write({text!r})\n"
        "sys.path.insert(0, FOLDER)\nimport made\n"
    )


_HOSTILE = (
    "*/ } int main(void) { abort(); } /*",
    '"; system("touch pwned"); "',
    "%n%n%n%s",
    "\\\n#error",
    "??/\n#include </etc/passwd>",
    "\u202e\u0000\u2028",
    "//\\",
    'R"x(',
    "#define double int",
)


def _hostile(text: str) -> str:
    shown = " ".join(text.replace("\0", "").split())
    body = (
        "from plusequals import cd\n@cd\ndef f(x):\n"
        f"    # {shown}\n    assert x[0] < 5, {text!r}\n"
        f"    return x[0] + {len(text)}\n"
    )
    return (
        _module(body) + f"attempt(lambda: made.f(X), {len(text)})\n"
        "try: made.f(X + 9)\n"
        "except AssertionError as problem: say('right' if str(problem) else 'empty')\n"
        "say('wrong: it was run' if os.path.exists(FOLDER + '/pwned') else 'right')"
    )


_MADE = "from plusequals import cd\n@cd\ndef f(x):\n    return x[0] + 1\n"

_IN_PLACE = {
    "shape": "x.shape = (10, 100)",
    "element type": "x.dtype = np.int64",
    "strides": "x = np.lib.stride_tricks.as_strided(x, (500,), (16,))",
    "size": "x.resize(10, refcheck=False)",
    "byte order": "x.dtype = x.dtype.newbyteorder()",
    "flags": "x.flags.writeable = False",
    "length 0": "x.resize(0, refcheck=False)",
}


def _archive(folder: Path) -> None:
    """Write the whole package into an archive."""
    import zipfile

    with zipfile.ZipFile(folder / "lib.zip", "w") as archive:
        package = ROOT / "plusequals"
        for path in (each for each in package.iterdir() if each.is_file()):
            archive.write(path, f"plusequals/{path.name}")
        for part in (each for each in package.iterdir() if each.is_dir()):  # links too
            inside = part.resolve()
            for path in (each for each in sorted(inside.rglob("*")) if each.suffix != ".pyc"):
                archive.write(path, f"plusequals/{part.name}/{path.relative_to(inside)}")


ROWS = [
    *(_row(f"hostile: {text!r}", body=_hostile(text)) for text in _HOSTILE),
    _row(
        "a name of 20,000 letters",
        body=_module(
            "from plusequals import cd\n@cd\ndef f(x):\n    " + 20_000 * "a" + " = x[0] + 1\n"
            "    return " + 20_000 * "a" + "\n"
        )
        + "attempt(lambda: made.f(X), 1)",
    ),
    _row(
        "names of C and of the system",
        body=_module(
            "from plusequals import cd\n@cd\ndef int(double, main, errno, free, memcpy, NULL):\n"
            "    return double[0] + main + errno + free + memcpy + NULL\n"
        )
        + "attempt(lambda: made.int(X, 1, 2, 3, 4, 5), 15)",
    ),
    _row(
        "the source is edited before the call",
        body=_module(_MADE)
        + f"open(FOLDER + '/made.py', 'w').write({_MADE.replace('+ 1', '+ 2')!r})\n"
        "attempt(lambda: made.f(X), 1)",
    ),
    _row(
        "the source is deleted before the call",
        body=_module(_MADE) + "os.unlink(FOLDER + '/made.py')\nattempt(lambda: made.f(X), 1)",
    ),
    _row(
        "there is no source",
        ends=("refused CD0101",),
        body="def made():\n    scope = {'cd': cd}\n    exec('@cd\\ndef f(x): return x', scope)\n"
        "    return scope['f'](X)\nattempt(made)",
    ),
    _row(
        "no UTF-8 in a comment",
        ends=("right",),
        body="open(FOLDER + '/made.py', 'wb').write(b'# coding: latin-1\\n# \\xe9\\xff\\n' + "
        + repr(_MADE.encode())
        + ")\nsys.path.insert(0, FOLDER)\nimport made\nattempt(lambda: made.f(X), 1)",
    ),
    _row(
        "the package is in an archive",
        before=_archive,
        environment={"PYTHONPATH": "{folder}/lib.zip"},
    ),
    *(
        _row(
            f"{name} changed in place between calls",
            "arrays",
            body="@cd\ndef h(x):\n    return np.sum(x) + x.size\nx = np.arange(1000.0)\n"
            "for _ in range(3): attempt(lambda: h(x), np.sum(x) + x.size)\n"
            f"{change}\nfor _ in range(3): attempt(lambda: h(x), np.sum(x) + x.size)",
        )
        for name, change in _IN_PLACE.items()
    ),
    _row(
        "written though it became read-only",
        "arrays",
        ends=("right",),
        body="@cd\ndef h(x):\n    x[0] = 7\n    return x[0]\nx = np.arange(9.0)\n"
        "attempt(lambda: h(x), 7)\nattempt(lambda: h(x), 7)\nx[0] = 1\nx.flags.writeable = False\n"
        "attempt(lambda: h(x), 7)\nsay('right' if x[0] == 1 else 'wrong: it was written')",
    ),
    _row(
        "an array that lies about itself",
        "arrays",
        ends=("right", "refused"),
        body="class Liar(np.ndarray):\n    shape = (10**9,)\n    size = 10**9\n"
        "@cd\ndef h(x):\n    return np.sum(x)\nattempt(lambda: h(X), np.sum(X))\n"
        "attempt(lambda: h(X.view(Liar)), np.sum(X))",
    ),
    _row(
        "an interface that raises",
        "arrays",
        between=("right",),
        ends=("raw", "refused"),
        body="class Bad:\n    @property\n    def __array_interface__(self): raise OSError('mine')\n"
        "attempt()\nattempt(lambda: f(Bad()))",
    ),
]
