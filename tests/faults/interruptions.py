"""What interrupts a call, and what a thread brings along: signals, finalizers, hooks, forks in
these, floating-point modes, little memory, small stacks."""

from __future__ import annotations

from tests.faults.rows import Row


def _row(name: str, subject: str = "interruptions", **more: object) -> Row:
    return Row(subject=subject, name=name, **more)


_TIMER = """
def every(seconds, handler, call=attempt):
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try: call()
    finally: signal.setitimer(signal.ITIMER_REAL, 0)
    attempt()
inside = []
def once(*_):
    if not inside:
        inside.append(1)
        attempt(lambda: g(X, 4), float(np.sum(X)))
        attempt()
        inside.clear()
"""
_RAISING = "def raising(*_): raise {}\n"
_RING = """
import gc, weakref
class Ring:
    def __init__(self): self.itself = self
class Last(Ring):
    def __del__(self):
        {}
def gone(_): once()
gc.set_threshold(5, 1, 1)
"""
_FORKS = """
def forks(*_):
    if inside: return
    inside.append(1)
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_REAL, 0)
        lines.clear()
        attempt(lambda: g(X, 2), float(np.sum(X)))
        tell()
        os._exit(0)
    os.waitpid(child, 0)
"""
_MODES = """
import ctypes
libm, word = ctypes.CDLL('libm.so.6'), {'x86_64': 28, 'aarch64': 0}[os.uname().machine]
@cd
def h(x, s): return np.cbrt(x), np.sin(1e5 * x), s + s, np.sum(s), x / 3, np.exp(x)
P, S = X + 1, X * 1e-309
def bits(): return b''.join(np.asarray(one).tobytes() for one in h(P, S))
def same(): say('right' if bits() == expected else 'wrong bits')
def twice(): same(), same()
def under(bit, call=twice):
    held = ctypes.create_string_buffer(64)
    libm.fegetenv(held)
    before = held.raw
    at = int.from_bytes(held.raw[word:word + 4], 'little') | bit
    held[word:word + 4] = at.to_bytes(4, 'little')
    libm.fesetenv(held)
    try: call()
    finally: libm.fesetenv(before)
"""
_MEMORY = """
before = resource.getrlimit(resource.RLIMIT_AS)
used = 4096 * int(open('/proc/self/statm').read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + ({}), before[1]))
attempt(), attempt(lambda: g(X, 4), float(np.sum(X)))
resource.setrlimit(resource.RLIMIT_AS, before)
attempt()
"""
_ALLOCATION = """
import _testcapi
attempt(lambda: g(X, 4), float(np.sum(X)))
for n in range({first}, {last}, {step}):
    new = pe.cd_from_source(f'def f(x):\\n    return x[0] + {{n}}\\n')
    problem = None
    _testcapi.set_nomemory(n, n + {count})
    try: new(X)
    except BaseException as one: problem = one
    finally: _testcapi.remove_mem_hooks()
    if problem is not None:
        named = isinstance(problem, (pe.CdError, MemoryError, SystemError))
        say('refused' if named else f'raw {{problem!r}}')
    attempt(lambda: new(X), n)
"""
_STACK = """
pe.use(stack_bytes={})
@cd
def sorts(x):
    for k in range(30):
        x = np.sort(x + k)[::-1]
    return np.sum(x)
Y = np.arange(2048.0)
threading.stack_size({})
t = threading.Thread(target=lambda: attempt(lambda: sorts(Y), float(np.sum(Y + 435))))
t.start()
t.join()
"""
_DEEP = """
def deeper(n): return attempt() if n == 0 else deeper(n - 1)
limit = sys.getrecursionlimit()
for left in {}:
    sys.setrecursionlimit(400 + left)
    try: deeper(380)
    except RecursionError as problem: say('refused by Python')
    finally: sys.setrecursionlimit(limit)
attempt()
"""

ROWS = [
    *(
        _row(
            f"a signal's handler calls, every {1000 * gap:g} ms", body=f"{_TIMER}every({gap}, once)"
        )
        for gap in (0.003, 0.02, 0.11, 0.3)
    ),
    *(
        _row(
            f"a signal's handler raises {kind.partition('(')[0]} after {1000 * gap:g} ms",
            body=_TIMER + _RAISING.format(kind) + f"every({gap}, raising)",
            between=("right", f"raw {kind.partition('(')[0]}"),
        )
        for kind, gap in (
            ("KeyboardInterrupt", 0.01),
            ("KeyboardInterrupt", 0.12),
            ("KeyboardInterrupt", 0.35),
            ("SystemExit(3)", 0.06),
            ("ValueError('of the user')", 0.2),
        )
    ),
    _row(
        "a signal's handler does nothing, 1,000 times a second",
        body=_TIMER + "every(0.001, lambda *_: None)",
    ),  # fmt: skip
    _row("a signal's handler forks", body=_TIMER + _FORKS + "every(0.15, forks)"),
    _row(
        "all signals are blocked",
        body="signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nattempt()",
    ),  # fmt: skip
    _row(
        "children are reaped by the system",
        body="signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nattempt()",
    ),  # fmt: skip
    _row(
        "a finalizer calls while it is compiled",
        body=_TIMER + _RING.format("once()") + "Last()\nattempt()\nattempt()",
    ),
    _row(
        "a weak reference's callback calls while it is compiled",
        body=_TIMER + _RING.format("pass") + "held = weakref.ref(Ring(), gone)\nattempt()",
    ),
    _row(
        "a finalizer forks while it is compiled",
        body=_TIMER + _FORKS + _RING.format("forks()") + "Last()\nattempt()\nattempt()",
    ),
    _row(
        "a finalizer raises",
        body=_TIMER + _RING.format("raise ValueError") + "Last()\nattempt()\nattempt()",
    ),
    *(
        _row(
            f"a {hook} calls, at event {at:,}",
            body=_TIMER
            + f"seen = iter(range({at}))\ndef event(*_):\n    if next(seen, None) is None:"
            f"\n        sys.{set_}(None)\n        once()\nsys.{set_}(event)\nattempt()\nattempt()",
        )
        for hook, set_, at in (
            ("profiler", "setprofile", 700),
            ("profiler", "setprofile", 30_000),
            ("profiler", "setprofile", 120_000),
            ("debugger", "settrace", 5_000),
        )
    ),
    _row(
        "no thread can be started",
        body="import _thread\ndef refused(*_): raise RuntimeError('no thread')\n"
        "_thread.start_new_thread = refused\nattempt()\nattempt(lambda: g(X, 4), float(np.sum(X)))",
    ),
    *(
        _row(
            f"subnormal numbers and rounding: {bit:#x}",
            "modes",
            body=f"{_MODES}expected = bits()\nunder({bit})\nsame()",
        )  # fmt: skip
        for bit in (0x8040, 0x8000, 0x2000, 0x4000, 0x6000)
    ),
    _row(
        "compiled under another rounding",
        "modes",
        body=_MODES
        + "found = []\nunder(0x4000, lambda: found.append(bits()))\nexpected = found[0]\nsame()",
    ),
    # fmt: skip
    *(
        _row(f"{room >> 10:,} KiB of memory are left", "memory", body=_MEMORY.format(room))
        for room in (0, 1 << 16, 1 << 20, 3 << 20, 8 << 20, 30 << 20, 100 << 20)
    ),
    *(
        _row(
            f"allocations {first:,} to {last:,} fail, {count} at a time",
            "memory",
            body=_ALLOCATION.format(first=first, last=last, step=step, count=count),
        )
        for first, last, step, count in (
            (0, 300, 13, 2),
            (300, 4000, 251, 20),
            (4000, 60_000, 3989, 200),
        )
    ),
    *(
        _row(
            f"a stack of {size >> 10} KiB, stack_bytes={stack}",
            "stack",
            body=_STACK.format(stack, size),
        )  # fmt: skip
        for stack, size in ((10**8, 1 << 18), (2**19, 1 << 20), (4096, 1 << 18))
    ),
    _row(
        "few calls may nest",
        "stack",
        body=_DEEP.format((10, 20, 35, 60, 100, 180)),
        between=("right", "refused", "raw RecursionError"),
    ),
]
