"""Limits of the system that are reached: open files, file sizes, processes, stacks, memory."""

from __future__ import annotations

from tests.faults.rows import Row

_REST = """
soft = 96
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
try:
    while True: held.append(os.open('/dev/null', os.O_RDONLY))
except OSError: pass
for _ in range(LEFT): os.close(held.pop())
attempt()
for one in held: os.close(one)
attempt()
"""


_PYTHON = ("raw SystemError: error return without exception set",)
"""What Python 3.11 raises where it has no memory for a frame."""

_LATE = """
import os, resource, sys
folder = os.environ['FAULTS_FOLDER']
text = '@cd\\ndef f(x):\\n    return x * 2\\n'
with open(folder + '/made.py', 'w') as file: file.write(text)
import numpy as np
from plusequals import cd, CdError
def tried(said=[]):
    try:
        scope = {{'cd': cd}}
        exec(compile(text, folder + '/made.py', 'exec'), scope)
        said.append('right' if scope['f'](np.ones(3))[0] == 2 else 'wrong')
    except CdError as problem:
        said.append('refused ' + problem.code)
    except BaseException as problem:
        said.append('raw ' + repr(problem))
    return said
soft = 96
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
try:
    while True: held.append(os.open('/dev/null', os.O_RDONLY))
except OSError: pass
for _ in range({left}): os.close(held.pop())
tried()
for one in held: os.close(one)
with open(folder + '/said.txt', 'w') as file: file.write('\\n'.join(tried()))
"""


def _row(name: str, **more: object) -> Row:
    return Row(subject="limits", name=name, **more)  # type: ignore[arg-type]


def _limited(what: str, value: str) -> str:
    hard = f"resource.getrlimit(resource.RLIMIT_{what})[1]"
    return f"resource.setrlimit(resource.RLIMIT_{what}, ({value}, {hard}))\n"


_THREAD = "threading.stack_size({size})\nt = threading.Thread(target=attempt)\nt.start()\nt.join()"

ROWS = [
    *(
        _row(
            f"{left} files may be opened{', code on disk' if warm else ''}",
            warm=warm,
            body=f"LEFT = {left}\n{_REST}",
            between=("right", "refused CD0814"),
        )
        for warm in (False, True)
        for left in (*range(14), 20)
    ),
    *(
        _row(
            f"{left} files may be opened where the first function is defined",
            flags=("-c", _LATE.format(left=left)),
        )
        for left in (0, 1, 3)
    ),
    _row(
        "no files may be opened where a function is defined",
        body=f"""LEFT = 0
text = "@cd\\ndef h(x):\\n    return np.sum(x) + 1\\n"
with open(FOLDER + "/made.py", "w") as file: file.write(text)
code, made = compile(text, FOLDER + "/made.py", "exec"), []
def define():
    scope = {{"cd": cd, "np": np}}
    exec(code, scope)
    made.append(scope["h"])
    return made[-1](X)
before, attempt = attempt, lambda: before(define, np.sum(X) + 1)
{_REST}
before(lambda: made[0](X), np.sum(X) + 1) if made else say("right")""",
        between=("right", "refused CD0814"),
    ),
    *(
        _row(
            f"files have at most {size} bytes",
            body=_limited("FSIZE", str(size))
            + "attempt()\n"
            + _limited("FSIZE", "resource.RLIM_INFINITY"),
            ends=("right", "refused CD0812", "refused CD0814"),
        )
        for size in (0, 1000, 20_000)
    ),
    _row(
        "files may grow again",
        body=_limited("FSIZE", "100")
        + "attempt()\n"
        + _limited("FSIZE", "resource.RLIM_INFINITY")
        + "attempt()",
    ),
    _row(
        "no process may be started",
        body="def refuse(*_):\n    raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
        "before, subprocess._fork_exec = subprocess._fork_exec, refuse\nattempt()\n"
        "subprocess._fork_exec = before\nattempt()",
        between=("refused CD0812",),
    ),
    _row("a stack of 512 KB", body=_limited("STACK", "524288") + "attempt()"),
    _row("a thread's stack of 256 KB", body=_THREAD.format(size=262144)),
    *(
        _row(
            f"{limit} calls may nest",
            body=f"sys.setrecursionlimit({limit})\nattempt()\n"
            "sys.setrecursionlimit(1000)\nattempt()",
            between=("right", "refused", "raw RecursionError"),
        )
        for limit in (60, 100, 200)
    ),
    *(
        _row(
            f"{size} MB of addresses are left",
            between=("right", "refused", "raw MemoryError", *_PYTHON),
            body="pages = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
            + _limited("AS", f"pages + {size} * 2**20")
            + "attempt()\n"
            + _limited("AS", "resource.RLIM_INFINITY")
            + "attempt()",
        )
        for size in (2, 8, 24, 60)
    ),
    _row(
        "no processor time is left soon",
        body="resource.setrlimit(resource.RLIMIT_CPU, (600, 600))\nattempt()",
    ),
    _row(
        "no core may be locked or dumped",
        body=_limited("CORE", "0") + _limited("MEMLOCK", "0") + "attempt()",
    ),
]
