"""Arguments that lie, that are odd, and arrays that are changed or exchanged between warm calls."""

from __future__ import annotations

from tests.faults.rows import Row


def _row(name: str, subject: str = "arguments", **more: object) -> Row:
    limit = "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
    more["body"] = f"{limit}{more['body']}"
    return Row(subject=subject, name=name, **more)


_ODD = {
    "no axis": "np.array(3.0)",
    "no element": "np.zeros(0)",
    "no element of many": "np.zeros((3, 0, 2))",
    "one element read 2**40 times": "np.broadcast_to(np.float64(1), (2**40,))[:10]",
    "elements of every other byte order": "X.astype('>f8')",
    "misaligned": "np.zeros(8001, 'u1')[1:].view('f8')",
    "read backwards": "X[::-1]",
    "read-only": "np.frombuffer(X.tobytes())",
    "objects": "np.array([1, None])",
    "texts": "np.array(['a', 'b'])",
    "records": "np.zeros(3, [('a', 'f8'), ('b', 'i4')])",
    "dates": "np.zeros(3, 'M8[s]')",
    "long doubles": "np.zeros(3, 'g')",
    "bytes without a type": "np.zeros(3, 'V7')",
    "a masked array": "np.ma.masked_array(X, X > 0.5)",
    "a matrix": "np.matrix(X)",
    "a record array": "np.rec.array([(1, 2.0)], dtype=[('a', 'i4'), ('b', 'f8')])",
    "a memory map": "np.memmap(FOLDER + '/map', 'f8', 'w+', shape=(10,))",
    "nothing": "None",
    "an iterator": "iter([1.0])",
    "a dictionary": "{1: 2}",
    "a list that has itself": "own",
    "nested lists of unlike length": "[[1.0], [2.0, 3.0]]",
    "a whole number of 400 digits": "10**400",
    "a type": "int",
    "a module": "np",
    "a function": "len",
    "a fraction": "__import__('fractions').Fraction(1, 3)",
    "a range": "range(10)",
    "bytes": "b'abc'",
    "a text": "'abc'",
}
_TWICE = """
own = []; own.append(own)
for _ in range(3):
    try: want = float(np.sum(np.exp(-np.asarray({0}) ** 2)) + np.exp(-np.asarray({0}) ** 2)[0])
    except BaseException: want = None
    attempt(lambda: f({0}), float('nan') if want is None else want)
attempt()
"""

_LIES = {
    "no typestr": "{'shape': (3,), 'data': (0, True), 'version': 3}",
    "a shape below 0": "{'shape': (-3,), 'typestr': '<f8', 'data': (X.ctypes.data, True), "
    "'version': 3}",
    "a shape that is none": "{'shape': 'abc', 'typestr': '<f8', 'data': (0, True), 'version': 3}",
    "strides that are too few": "{'shape': (3, 3), 'strides': (8,), 'typestr': '<f8', "
    "'data': (X.ctypes.data, True), 'version': 3}",
    "a type that is none": "{'shape': (3,), 'typestr': '<q99', 'data': (0, True), 'version': 3}",
    "an address that is a text": "{'shape': (3,), 'typestr': '<f8', 'data': 'here', 'version': 3}",
    "2**62 elements": "{'shape': (2**62,), 'typestr': '<f8', 'data': (X.ctypes.data, True), "
    "'version': 3}",
    "no dictionary": "7",
}
_LIAR = """
class Liar:
    @property
    def __array_interface__(self): return {}
attempt(lambda: f(Liar()), 0)
attempt()
"""

_CLASSES = {
    "an array whose shape lies": "class A(np.ndarray):\n    shape = (10**9,)\nbad = X.view(A)",
    "an array whose type lies": "class A(np.ndarray):\n    dtype = np.dtype('i1')\nbad = X.view(A)",
    "an array that raises for everything": "class A(np.ndarray):\n"
    "    def __getattribute__(self, name): raise ValueError(name)\nbad = X.view(A)",
    "an array that computes otherwise": "class A(np.ndarray):\n"
    "    def __array_ufunc__(self, *a, **k): return 7\nbad = X.view(A)",
    "an object that makes itself": "class A:\n    def __array__(self, *a, **k): return self\n"
    "bad = A()",
    "an object that raises": "class A:\n    def __array__(self, *a, **k): raise OSError\nbad = A()",
    "an object that gives all names": "class A:\n    def __getattr__(self, name): return self\n"
    "bad = A()",
    "a float that is none": "class A(float):\n    def __float__(self): raise OSError\nbad = A(3)",
    "a whole number that grows": "class A(int):\n    def __index__(self): return 2**70\nbad = A(3)",
    "a tuple that is endless": "class A(tuple):\n    def __len__(self): return 2**60\n"
    "bad, want = A((1, 2)), float(2 * np.exp(-1) + np.exp(-4))",
    "a capsule that was used": "class A:\n    def __dlpack__(self, **k): return None\n"
    "    def __dlpack_device__(self): return (1, 0)\nbad = A()",
    "a device that is none": "class A:\n    def __dlpack__(self, **k): raise BufferError\n"
    "    def __dlpack_device__(self): return (99, 'a')\nbad = A()",
    "an equal to everything": "class A:\n    def __eq__(self, other): return True\n"
    "    __hash__ = None\nbad = A()",
}

_ATTRIBUTE = """
class Own: pass
own = Own()
own.x = X
@cd
def h(o): return np.sum(o.x) + o.x.shape[0]
def sums(): attempt(lambda: h(own), float(np.sum(own.x) + len(own.x)))
for _ in range(3): sums()
{}
sums()
own.x = X
sums()
"""
_EXCHANGES = {
    "shorter": "own.x = X[:10].copy()",
    "of another type": "own.x = X.astype('f4')",
    "of another layout": "own.x = np.repeat(X, 2)[::2]",
    "in place": "own.x = X.copy()\nsums()\nown.x.resize(7, refcheck=False)",
    "by a list": "own.x = [1.0, 2.0]\nattempt(lambda: h(own), float('nan'))\nown.x = X",
    "by nothing": "del own.x\nattempt(lambda: h(own), float('nan'))\nown.x = X",
    "by a property that raises": "Own.x = property(lambda self: 1 / 0)\n"
    "attempt(lambda: h(own), float('nan'))\ndel Own.x",
    "at each look": "sizes = iter(range(1, 10**6))\n"
    "Own.x = property(lambda self: np.ones(next(sizes)))\n"
    "attempt(lambda: h(own), float('nan'))\ndel Own.x",
    "by a thread": "stop = []\n"
    "def on():\n    while not stop:\n        own.x = X[:10]\n        own.x = X\n"
    "sys.setswitchinterval(1e-6)\nt = threading.Thread(target=on)\nt.start()\n"
    "for _ in range(300):\n    got = h(own)\n"
    "    good = any(np.isclose(got, np.sum(a) + len(a)) for a in (X, X[:10]))\n"
    "    if not good: say(f'wrong {got}')\n"
    "stop.append(1)\nt.join()",
}

_WRITTEN = """
@cd
def w(y, x): y[:] = y * 2 + x[::-1]
def written(y, x, want=None):
    before = np.array(y)
    def call():
        w(y, x)
        return y
    attempt(call, before * 2 + np.array(x)[::-1])
A, B = X.copy(), X.copy()
for _ in range(3): written(A, B)
{}
written(X.copy(), X.copy())
"""
_WRITES = {
    "the same array": "written(A, A)",
    "the same array, then a view of memory": "written(A, A)\nwritten(A, memoryview(B))\n"
    "written(A, memoryview(A))",
    "what overlaps": "C = np.arange(1500.0)\nwritten(C[:1000], C[400:1400])",
    "what became read-only": "A.flags.writeable = False\nwritten(A, B)",
    "one element many times": "written(np.broadcast_to(1.0, (1000,)), B)",
    "a list": "written([1.0] * 1000, B)",
    "what became shorter": "A.resize(10, refcheck=False)\nwritten(A, B[:10])",
    "elements of another type": "A.dtype = 'i8'\nwritten(A, B)",
}

ROWS = [
    *(
        _row(name, body=_TWICE.format(text), between=("right", "refused"))
        for name, text in _ODD.items()
    ),
    *(_row(f"an interface with {name}", body=_LIAR.format(text)) for name, text in _LIES.items()),
    *(
        _row(
            name,
            "classes",
            body=f"want = float(np.sum(np.exp(-X * X)) + 1)\n{text}\n"
            "attempt(lambda: f(bad), want)\nattempt(lambda: f(bad), want)\nattempt()",
            between=("right", "refused", "raw OSError", "raw ValueError"),
        )  # fmt: skip
        for name, text in _CLASSES.items()
    ),
    *(
        _row(
            f"an attribute is exchanged {name}",
            "exchanged",
            body=_ATTRIBUTE.format(text),
            between=("right", "refused", "raw ZeroDivisionError"),  # the property's own
        )
        for name, text in _EXCHANGES.items()
    ),
    *(
        _row(f"written: {name}", "written", body=_WRITTEN.format(text))
        for name, text in _WRITES.items()
    ),
]
