"""Which array each routine has, who owns it and what is refused, for every order of linking.

All sequences of three routines that read, write or add to one field are linked onto two streams of
a device, for every request, and held against a model that was written from the rules of `device`:
what is linked, what `explain_memory` says, and what calls in every order compute.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError

REQUESTS = {
    "": None,
    "per stream": "on-device, per-stream",
    "shared": "on-device, shared-across-streams",
}
TEXTS = {
    "read": "def read(q, p):\n    q[i] = p[i]\n",
    "write": "def write(p):\n    p[i] = {}.0\n",
    "add": "def add(p):\n    p[i] += {}.0\n",
}
FUNCTIONS = {
    (kind, at): pe.cd_from_source(text.format(10 + at), backend="numpy")
    for kind, text in TEXTS.items()
    for at in range(3)
}
Links = tuple[tuple[str, int], ...]
SEQUENCES: list[Links] = [
    links
    for links in itertools.product(itertools.product(TEXTS, (0, 1)), repeat=3)
    if links[0][1] == 0  # the streams are alike
]


@dataclass
class Array:
    """An array of the model: its name, and the version and value that it holds."""

    name: str
    tick: int
    value: float


@dataclass
class Model:
    """The rules: one field on the two streams of a device."""

    request: str
    on_host: bool
    chained: bool
    clock: int = 0
    host: Array = field(default_factory=lambda: Array("host", 0, 1.0))
    host_tick: int = 0
    shared: Array | None = None
    owner: int | None = None
    is_private: bool = False
    """Whether it has an array on every stream, by request or by what was linked first."""
    contexts: dict[int, Array] = field(default_factory=dict)
    """The array of the last context of each stream, which a child inherits."""
    arrays: list[Array] = field(default_factory=list)

    def newest(self) -> Array:
        """The array with the newest version, the host's if it has it."""
        return max((self.host, *self.arrays), key=lambda array: array.tick)

    def link(self, kind: str, stream: int) -> Array | None:
        """Return the array of a routine, None where it is refused."""
        is_written = kind != "read"
        array = self.contexts.get(stream) if self.chained else None
        if array is None:
            first_written = is_written and self.shared is None and self.request != "shared"
            if self.is_private or self.request == "per stream" or first_written:
                self.is_private = True
                array = self._new("own")
        if array is None or array is self.shared:
            if is_written and self.owner not in (None, stream):
                return None
            if self.shared is None:
                is_hosts = self.on_host and self.newest() is self.host
                self.shared = self.host if is_hosts else self._new("shared")
            array = self.shared
            if is_written:
                self.owner = stream
        self.contexts[stream] = array
        return array

    def _new(self, name: str) -> Array:
        newest = self.newest()
        self.arrays.append(Array(name, newest.tick, newest.value))
        return self.arrays[-1]

    def call(self, kind: str, at: int, array: Array) -> float:
        """Run a routine; return what it reads."""
        if kind != "write" and self.host_tick > array.tick:
            array.tick, array.value = self.host.tick, self.host.value
        read = array.value
        if kind != "read":
            self.clock += 1
            array.tick = self.clock
            array.value = 10.0 + at if kind == "write" else read + 10.0 + at
        return read

    def write_on_host(self, value: float) -> None:
        """Write all of it on the host."""
        self.clock += 1
        self.host.value, self.host.tick, self.host_tick = value, self.clock, self.clock


@dataclass
class Pair:
    """A model, and what it is a model of."""

    model: Model
    p: Any
    streams: list[pe.Stream]
    routines: list[tuple[str, int, Any, Array, Any]] = field(default_factory=list)
    """Kind, number, routine, array of the model, and the tensor that it reads into."""
    contexts: dict[int, pe.Context] = field(default_factory=dict)

    def link(self, kind: str, stream: int, at: int) -> None:
        q = pe.tensor(f"q{at}", 1, dtype="float64")
        function = FUNCTIONS[kind, at]
        code = function.compile(q, self.p) if kind == "read" else function.compile(self.p)
        context = self.contexts.get(stream) if self.model.chained else None
        expected = self.model.link(kind, stream)
        context = context or self.streams[stream].context()
        if expected is None:
            with pytest.raises(CdError, match=f"CD0843.*{self.streams[1 - stream].name}"):
                code.link(context)
            return
        routine = code.link(context)
        self.contexts[stream] = routine.context
        self.routines.append((kind, at, routine, expected, q))

    def call(self, which: int) -> None:
        kind, at, routine, array, q = self.routines[which]
        routine()
        read = self.model.call(kind, at, array)
        if kind == "read":
            assert q.numpy().tolist() == [read]
        assert self.p.numpy().tolist() == [self.model.newest().value]

    def require_arrays(self) -> None:
        """Assert that routines share the arrays that they share in the model, and are told so."""
        device = self.streams[0].device
        shared = device.shared.get(self.p.value)
        for (_, _, one, mine, _), (_, _, two, theirs, _) in itertools.product(
            self.routines, repeat=2
        ):
            is_same = one.context.find(self.p.value) is two.context.find(self.p.value)
            assert is_same is (mine is theirs)
        for _, _, routine, array, _ in self.routines:
            buffer = routine.context.find(self.p.value)
            assert (buffer is self.p.value.host) is (array is self.model.host)
            assert (shared is not None and buffer is shared.buffer) is (array.name != "own")
            self._require_report(routine, array)

    def _require_report(self, routine: Any, array: Array) -> None:
        stream, model = routine.context.stream, self.model
        (row,) = [row for row in routine.explain_memory().placements if row.field == "p"]
        names = {
            "host": "the host's",
            "shared": f"shared by the streams of {stream.device.name}",
            "own": f"one of its own on {stream.name}",
        }
        owner = None if model.owner is None else self.streams[model.owner].name
        assert row.array == names[array.name]
        assert row.owner == (stream.name if array.name == "own" else owner)
        if model.request:
            assert row.reason.startswith(f"it was asked to be on device, {model.request}")
        else:
            verb = "written" if array.name == "own" else "only read"
            assert row.reason.startswith(f"it was {verb} when it first got an array on")


def pair(links: Links, request: str, place: str, chained: bool, threaded: bool) -> Pair:
    p = pe.tensor("p", 1, dtype="float64", init=1.0, memory=REQUESTS[request])
    streams = [pe.device(place).stream(threaded) for _ in range(2)]
    return Pair(Model(request, place == "numpy", chained), p, streams)


PLACES = pytest.mark.parametrize(
    ("place", "chained", "threaded"),
    [
        ("numpy", False, False), ("numpy", True, True),
        ("numpy:1", False, True), ("numpy:1", True, False),
    ],
)  # fmt: skip


@pytest.mark.parametrize("request_", REQUESTS)
@PLACES
def test_every_order_of_linking_and_of_calls(
    place: str, chained: bool, threaded: bool, request_: str
) -> None:
    assert len(SEQUENCES) == 108
    for links in SEQUENCES:
        both = pair(links, request_, place, chained, threaded)
        for at, (kind, stream) in enumerate(links):
            both.link(kind, stream, at)
            both.require_arrays()
        for order in itertools.permutations(range(len(both.routines))):
            both.p[...] = 2.0
            both.model.write_on_host(2.0)
            for which in order:
                both.call(which)


@pytest.mark.parametrize("request_", REQUESTS)
@PLACES
def test_every_order_of_linking_with_calls_in_between(
    place: str, chained: bool, threaded: bool, request_: str
) -> None:
    for links in SEQUENCES:
        both = pair(links, request_, place, chained, threaded)
        for at, (kind, stream) in enumerate(links):
            both.link(kind, stream, at)
            for which in range(len(both.routines)):
                both.call(which)
            both.require_arrays()
        assert both.p.value.clock == both.model.clock, "every write is a version, and nothing else"


def test_how_many_of_these_are_refused() -> None:
    refused = {}
    for request in REQUESTS:
        results = []
        for links in SEQUENCES:
            model = Model(request, on_host=True, chained=False)
            results.append([model.link(*link) is None for link in links])
        refused[request] = sum(map(any, results))
    # shared by a reader first, then two of two kinds that write, on either order of the streams
    assert refused == {"": 2 * 2 * 2, "per stream": 0, "shared": 8 + 2 * (36 - 16)}
