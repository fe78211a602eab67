"""Memory modes: a lattice of where an array may live, and the join of requests.

    Mode    := effectively constant | virtual | never virtual | local | device only | materialized
             | on device(Sharing)
             | hosted constant | hosted nonconstant | hosted volatile
             | hosted changed on devices(Sharing)
    Sharing := unset | per stream | shared across streams

Virtual is computed where it is used; local lives during one routine; on device is an array of a
context; hosted has an array on the host as well. Effectively constant, never virtual, device only
and materialized leave several of those open. The functions return new values and
have no side effects.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdTypeError, CdValueError, Diagnostic, Label, Span, nearest

Kind = Literal[
    "effectively constant",
    "virtual",
    "never virtual",
    "local",
    "device only",
    "on device",
    "materialized",
    "hosted constant",
    "hosted nonconstant",
    "hosted changed on devices",
    "hosted volatile",
]
Sharing = Literal["unset", "per stream", "shared across streams"]


@dataclass(frozen=True, slots=True)
class Mode:
    """An element of the lattice; `sharing` applies on devices only."""

    kind: Kind
    sharing: Sharing = "unset"

    def __str__(self) -> str:
        return self.kind if self.sharing == "unset" else f"{self.kind}, {self.sharing}"


EFFECTIVELY_CONSTANT = Mode("effectively constant")
VIRTUAL = Mode("virtual")
NEVER_VIRTUAL = Mode("never virtual")
LOCAL = Mode("local")
DEVICE_ONLY = Mode("device only")
ON_DEVICE = Mode("on device")
MATERIALIZED = Mode("materialized")
HOSTED_CONSTANT = Mode("hosted constant")
HOSTED_NONCONSTANT = Mode("hosted nonconstant")
HOSTED_CHANGED = Mode("hosted changed on devices")
HOSTED_VOLATILE = Mode("hosted volatile")


@dataclass(frozen=True, slots=True)
class Request:
    """A requested mode, the sentence that says why, and its span in the source."""

    mode: Mode
    why: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Decision:
    """The join of the requests so far; `requests` are those that changed it, in order."""

    mode: Mode
    requests: tuple[Request, ...]

    @property
    def why(self) -> str:
        """The reasons as one text, the newest first."""
        return "; before that, ".join(request.why for request in reversed(self.requests))


Outcome = Mode | Literal["stays"] | str
"""The result of a join: a mode, "stays" for the current one; any other text is the reason of
refusal."""

_INCONSISTENT = "these exclude each other"
_ONE_REQUEST = (
    "the first settles all that there is to say of its place on a device, and how streams share it"
    " is part of that; ask for both in one request"
)
_IS_VIRTUAL = "it is already virtual: it has no array of its own"
_NOT_VIRTUAL = "it cannot be virtual: it was said to have an array"

_COLUMNS: tuple[Kind, ...] = (
    "effectively constant", "virtual", "never virtual", "local", "device only", "on device",
    "materialized",
)  # fmt: skip
_HOSTED: tuple[Kind, ...] = (
    "hosted constant", "hosted nonconstant", "hosted changed on devices", "hosted volatile",
)  # fmt: skip


def parse_mode(name: object, span: Span = NOWHERE) -> Mode:
    """Return the mode that a request spells: `"virtual"`, `"on-device"`, `"hosted"`.

    Words are joined by blanks, hyphens or underscores; a sharing follows a comma; `hosted` alone is
    hosted nonconstant. Raises CdValueError CD0573 for any other name.

    >>> print(parse_mode("on-device, per-stream"), parse_mode("hosted"), sep="; ")
    on device, per stream; hosted nonconstant
    """
    words = name.lower().replace("-", " ").replace("_", " ") if isinstance(name, str) else ""
    kind, _, sharing = (part.strip() for part in words.partition(","))
    kind = "hosted nonconstant" if kind == "hosted" else kind
    shares = kind in ("on device", "hosted changed on devices")
    if kind in get_args(Kind) and (sharing in get_args(Sharing) and shares or not sharing):
        return Mode(cast(Kind, kind), cast(Sharing, sharing or "unset"))
    near = nearest(words, ["hosted", *get_args(Kind)])
    raise CdValueError(
        Diagnostic(
            "CD0573",
            f"there is no memory mode {name!r}",
            (Label(span),) if span is not NOWHERE else (),
            ("the modes are hosted, " + ", ".join(get_args(Kind)),),
            (f"did you mean `{near}`?",) if near else ("write one of these",),
        )
    )


def join(current: Decision | None, request: Request, label: str = "the array") -> Decision:
    """Return the decision joined with one more request; the arguments are unchanged.

    Raises CdTypeError with both requests, their reasons and spans, where they are contradictory.
    """
    if current is None:
        return Decision(request.mode, (request,))
    return _apply_outcome(current, request, join_modes(current.mode, request.mode), label)


def share(
    current: Decision | None, sharing: Sharing, why: str, span: Span = NOWHERE,
    label: str = "the array",
) -> Decision:  # fmt: skip
    """Return the decision with its arrays shared, or not, by the streams of a device.

    Raises CdTypeError with both requests where the decision does not admit that.
    """
    request = Request(Mode("on device", sharing), why, span)
    if current is None:
        return Decision(request.mode, (request,))
    return _apply_outcome(current, request, join_sharing(current.mode, sharing), label)


def join_modes(current: Mode, requested: Mode) -> Outcome:
    """Return the join of two modes, "stays", or the reason why it is refused."""
    if current == requested:
        return "stays"
    if requested.kind.startswith("hosted"):
        return _join_hosted(current, requested)
    if current.kind == requested.kind:  # they differ in sharing
        return _ONE_REQUEST
    outcome = _join_row(current)[_COLUMNS.index(requested.kind)]
    return requested if outcome == "moves" else outcome


def join_sharing(current: Mode, sharing: Sharing) -> Outcome:
    """Return the mode with a sharing, "stays", or the reason why it is refused."""
    match current:
        case Mode("on device" | "hosted changed on devices", before) if before == sharing:
            return "stays"
        case Mode("on device" | "device only" | "materialized", "unset"):
            return Mode("on device", sharing)
        case Mode("hosted nonconstant" | "hosted changed on devices", "unset"):
            return Mode("hosted changed on devices", sharing)
        case Mode("hosted constant" | "hosted volatile"):
            if sharing == "shared across streams":
                return "stays"
            return "hosted arrays that devices do not change must be shared"
        case Mode("on device" | "hosted changed on devices"):
            return "its sharing is settled already"
        case _:
            return "it has no array on a device that could be shared"


def most_local(mode: Mode | None) -> Mode:
    """Return the least memory that an undecided mode still admits; decided modes as they are.

    >>> print(most_local(None), most_local(NEVER_VIRTUAL), most_local(MATERIALIZED), sep="; ")
    virtual; local; on device
    """
    match mode:
        case None | Mode("effectively constant"):
            return VIRTUAL
        case Mode("never virtual" | "device only"):
            return LOCAL
        case Mode("materialized"):
            return ON_DEVICE
        case _:
            return mode


def admits_virtual(mode: Mode | None) -> bool:
    """Return whether an array may be computed where it is used, as far as was asked."""
    return most_local(mode) == VIRTUAL


def _join_row(current: Mode) -> tuple[Outcome, ...]:
    """Return the join with each request of `_COLUMNS`; "moves" is the requested mode."""
    no, virtual = _INCONSISTENT, _IS_VIRTUAL
    match current.kind:
        case "effectively constant":
            return ("stays", "moves", HOSTED_CONSTANT, no, no, no, HOSTED_CONSTANT)
        case "virtual":
            return ("stays", "stays", virtual, no, no, no, no)
        case "never virtual":
            return (HOSTED_CONSTANT, _NOT_VIRTUAL, "stays", "moves", "moves", "moves", "moves")
        case "local":
            return (no, no, "stays", "stays", "stays", no, no)
        case "device only":
            return (no, no, "stays", "moves", "stays", "moves", ON_DEVICE)
        case "on device":
            return (no, no, "stays", no, "stays", no, "stays")
        case "materialized":
            return (HOSTED_CONSTANT, no, "stays", no, ON_DEVICE, "moves", "stays")
        case "hosted constant":
            return ("stays", no, "stays", no, no, no, "stays")
        case _:
            return (no, no, "stays", no, no, no, "stays")


def _join_hosted(current: Mode, requested: Mode) -> Outcome:
    match current.kind, requested.kind:
        case ("effectively constant", "hosted constant") | ("never virtual" | "materialized", _):
            return requested
        case "hosted nonconstant", "hosted changed on devices" | "hosted volatile":
            return requested
        case "hosted changed on devices" | "hosted volatile", "hosted nonconstant":
            return "stays"
        case _:
            return _INCONSISTENT


def _apply_outcome(current: Decision, request: Request, outcome: Outcome, label: str) -> Decision:
    match outcome:
        case Mode():
            return Decision(outcome, (*current.requests, request))
        case "stays":
            return current
        case _:
            raise _refusal(current, request, outcome, label)


def _refusal(current: Decision, request: Request, because: str, label: str) -> CdTypeError:
    before = current.requests[-1]
    notes = [
        f"it is {current.mode}: {current.why}",
        f"then {request.mode} was asked for: {request.why}",
    ]
    return CdTypeError(
        Diagnostic(
            "CD0571",
            f"{label} is {current.mode} and cannot become {request.mode}: {because}",
            (Label(request.span, f"asks for {request.mode}"),
             Label(before.span, f"made it {current.mode}")),
            tuple(notes),
            ("drop one of the two requests, or use another array for one of them",),
        )
    )  # fmt: skip
