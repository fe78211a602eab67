"""Forks, ends, and flags of the interpreter; streams that are closed."""

from __future__ import annotations

from tests.faults.rows import Row


def _row(name: str, subject: str = "process", **more: object) -> Row:
    return Row(subject=subject, name=name, **more)  # type: ignore[arg-type]


_FORK = """
import faulthandler
faulthandler.register(signal.SIGUSR1)

def forked(work=attempt):
    child = os.fork()
    if not child:
        lines.clear()
        work()
        tell()
        os._exit(0)
    return child

def wait(child):
    until = time.time() + 30
    while time.time() < until:
        if os.waitpid(child, os.WNOHANG)[0]: return
        time.sleep(0.01)
    os.kill(child, signal.SIGUSR1)
    time.sleep(1)
    os.kill(child, 9)
    say("the child hangs")
"""

ROWS = [
    _row("forks before the first call", body=_FORK + "child = forked()\nattempt()\nwait(child)"),
    _row("forks after a call", body=_FORK + "attempt()\nwait(forked())"),
    _row(
        "forks while a thread compiles",
        body=_FORK + "t = threading.Thread(target=attempt)\nt.start()\n"
        "time.sleep(0.15)\nchild = forked()\nt.join()\nwait(child)",
    ),
    _row(
        "forks ten times meanwhile",
        body=_FORK + "t = threading.Thread(target=attempt)\nt.start()\n"
        "some = [(time.sleep(0.03), forked())[1] for _ in range(10)]\nt.join()\n"
        "for one in some: wait(one)",
    ),
    _row(
        "a child ends by _exit in the middle",
        body=_FORK + "def half():\n    threading.Thread(target=attempt, daemon=True).start()\n"
        "    time.sleep(0.1)\n    os._exit(0)\nwait(forked(half))\nattempt()",
    ),
    _row(
        "a child is killed in the middle",
        body=_FORK
        + "child = forked()\ntime.sleep(0.1)\nos.kill(child, 9)\nos.waitpid(child, 0)\nattempt()",
    ),
    _row(
        "is called at exit",
        body="import atexit\natexit.register(tell)\natexit.register(attempt)\ntell = lambda: None",
    ),
    _row(
        "a daemon thread calls at exit",
        body="attempt()\ndef on():\n    while True: f(X)\n"
        "threading.Thread(target=on, daemon=True).start()\ntime.sleep(0.05)",
    ),
    _row(
        "ends while something is compiled",
        body="threading.Thread(target=lambda: g(X, 2), daemon=True).start()\nattempt()",
    ),
    _row(
        "ends by sys.exit in a thread's call",
        body="t = threading.Thread(target=lambda: (f(X), sys.exit(1)))\n"
        "t.start()\nt.join()\nattempt()",
    ),
    _row(
        "twenty threads at once",
        body="some = [threading.Thread(target=attempt) for _ in range(20)]\n"
        "for t in some: t.start()\nfor t in some: t.join()",
    ),
    _row("the collector runs all the time", body="import gc\ngc.set_threshold(1)\nattempt()"),
    *(
        _row(f"python {' '.join(flags)}", "interpreter", flags=flags)
        for flags in (
            ("-O",),
            ("-OO",),
            ("-X", "dev"),
            ("-W", "error"),
            ("-bb",),
            ("-B",),
            ("-s",),
            ("-X", "no_debug_ranges"),
            ("-X", "utf8=0"),
            ("-X", "dev", "-W", "error", "-OO"),
        )
    ),
    _row(
        "python -I",
        "interpreter",
        flags=(
            "-I",
            "-c",
            "import os, sys; sys.path.insert(0, os.environ['PYTHONPATH']); import runpy; "
            "sys.argv = [os.environ['FAULTS_FOLDER'] + '/program.py']; runpy.run_path(sys.argv[0])",
        ),
    ),
    *(
        _row(f"{name}={text or '(unset)'}", "interpreter", environment={name: text})
        for name, text in (
            ("PYTHONMALLOC", "debug"),
            ("PYTHONHASHSEED", "1"),
            ("LC_ALL", "C"),
            ("LANG", ""),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONTRACEMALLOC", "5"),
            ("PYTHONPROFILEIMPORTTIME", "1"),
            ("MALLOC_PERTURB_", "165"),
        )
    ),
    _row("is traced", "interpreter", body="sys.settrace(lambda *a: None)\nattempt()"),
    _row("numpy raises for everything", "interpreter", body="np.seterr(all='raise')\nattempt()"),
    _row("all streams are closed", "streams", body="for n in (0, 1, 2): os.close(n)\nattempt()"),
    _row(
        "streams are None", "streams", body="sys.stdin = sys.stdout = sys.stderr = None\nattempt()"
    ),
    _row(
        "the error stream is full",
        "streams",
        body="pe.use(debug=1)\nsys.stderr = open('/dev/full', 'w', 1)\n"
        "attempt()\nsys.stderr = sys.__stderr__\nattempt()",
        between=("right", "refused", "raw OSError"),
    ),
    _row(
        "the output has no reader",
        "streams",
        body="r, w = os.pipe()\nos.close(r)\nos.dup2(w, 1)\nattempt()",
    ),
]
