"""Settings: their meaning, the sources of their values, and the only reader of the environment.

The value of a setting is taken from the last of these that gives one: the default below, the
environment (`PLUSEQUALS_BACKEND=numpy`), `use(backend="numpy")` for the process, and
`with override(backend="numpy"):` for the code inside, in this thread or task only.

    current().backend              what holds here and now
    use("numpy", debug=1)          for the whole process
    with override(verify=True): ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, fields, replace
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    NoReturn,
    get_args,
    get_origin,
    get_type_hints,
)

from .dataclass import dataclass
from .diagnostic import CdNameError, CdTypeError, CdValueError, Diagnostic, nearest
from .lazy_import import LazyModule
from .process_state import State, register

if TYPE_CHECKING:
    import typeguard
else:  # costs start-up
    typeguard = LazyModule("typeguard", None)

PREFIX = "PLUSEQUALS_"
Changes = Mapping[str, Any]
Effort = Literal[0, 1, 2, 3, "g"]


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The value of every setting at one moment. The texts are what the documentation prints."""

    backend: str = _setting("cc", "what runs the code: `cc`, `cuda`, `numpy`, or a plug-in's name")
    profile: Literal["default", "strict"] = _setting(
        "default", "`strict`: program order, no fma, every operation rounded as written"
    )
    checked: bool = _setting(False, "division by zero and values that become NaN raise")
    checked_overflow: bool = _setting(False, "with `checked`, so do integers that overflow")
    verify: bool = _setting(False, "check the invariants of every stage between passes")
    optimize: Effort = _setting(
        3, "how hard the C compiler tries, its `-O` level; `g` tries least of those that try"
    )
    compiler: str = _setting("", "the C compiler's command; empty finds one")
    compiler_timeout: float = _setting(120.0, "seconds after which a compilation is given up")
    cache: bool = _setting(True, "keep compiled code on disk")
    cache_dir: str = _setting("", "where; empty is the user's cache folder")
    shared_cache_dir: str = _setting(
        "", "a cache that others have written, which is only read; empty for none"
    )
    shared_cache_owner: str = _setting(
        "root", "whose entries of `shared_cache_dir` are believed, beside your own and root's"
    )
    cache_size: int = _setting(1024, "megabytes above which the oldest entries are removed")
    cache_timeout: float = _setting(
        60.0, "seconds to wait for another process that compiles, before compiling as well"
    )
    threads: int = _setting(
        0, "how many threads one call may use; 0 is all processors that it may use"
    )
    parallel_from: int = _setting(
        400_000, "work, counted in additions of vectors, from which on threads share a loop"
    )
    schedule: bool = _setting(
        True, "change the order and shape of loops for speed: lanes, tiles, threads"
    )
    tf32: bool = _setting(
        False, "on `cuda`, products of float32 matrices by tensor cores: factors keep 10 bits"
    )
    atomics: bool = _setting(
        False, "on `cuda`, sums to where data says by atomic operations: sooner, in no fixed order"
    )
    stack_bytes: int = _setting(
        4096,
        "temporary arrays up to this size live on the stack, together at most 128 KiB, all others "
        "on the heap",
    )
    automatic_host_transfers: bool = _setting(
        True, "tensors move between the host and devices when they have to"
    )
    debug: Literal[0, 1, 2, 3, 4, 5, 6] = _setting(0, "how much is told while working, 0 to 6")
    debug_log_from_routines: bool = _setting(
        False, "write the log of every run: each assignment with its values"
    )
    debug_log_to_stream_files: bool = _setting(
        False, "append the logs of a stream to one file, instead of one file for each routine"
    )
    debug_log_by_printf: bool = _setting(
        False, "on `cuda`, the device prints its log line by line, and records nothing"
    )
    pipeline: Literal["whole", "short"] = _setting(
        "whole",
        "`short` runs few passes, and `-O1` in the C compiler: compiled sooner, for slower code",
    )
    stop_after: str = _setting("", "the last pass to run, `lower` for none; empty runs all of them")
    dump_dir: str = _setting(
        "", "a folder that receives every stage as text, and logs; empty for none"
    )

    def __enter__(self) -> NoReturn:
        """Raise CdTypeError: `use` is for the process, `override` for a `with`."""
        raise CdTypeError(
            Diagnostic(
                "CD0824",
                "settings cannot be entered by `with`",
                notes=("`use` changed those of the process; `settings.reset()` takes that back",),
                helps=("`with plusequals.override(...):` changes them for the code inside",),
            )
        )

    def __exit__(self, *_: object) -> None:
        """Do nothing: settings are never entered."""


class _Process:
    """The process-wide settings: changes by the environment, then those of `use`."""

    __slots__ = ("settings",)

    def __init__(self) -> None:
        self.settings: Settings | None = None


_NAMES = tuple(Settings.__annotations__)
_NOT_IN_CODE = {
    "compiler", "compiler_timeout", "cache", "cache_dir", "shared_cache_dir", "shared_cache_owner",
    "cache_size", "cache_timeout",
}  # fmt: skip
"""Settings of where and how long compiled code is searched; the code does not depend on them."""


class _Override(NamedTuple):
    """The changes of the enclosing `with` blocks, and the settings that result from those of the
    process."""

    changes: Changes
    base: Settings
    settings: Settings


_process = _Process()
_overrides: ContextVar[_Override | None] = ContextVar("plusequals settings", default=None)
_interned: dict[tuple[Any, ...], Settings] = {}
"""The settings that were in force, by their values: equal settings are one object, so that the fast
path of calls compares them by identity."""
_MAX_INTERNED = 256
"""A table of so many settings is emptied. Later settings are then other objects than equal earlier
ones, which costs the next call of a function its fast path, once."""
_values_of = attrgetter(*_NAMES)


def current() -> Settings:
    """Return the settings in force in this thread or task.

    Raises CdNameError or CdValueError where the environment has a setting that is unknown or
    invalid.
    """
    base = _process.settings
    if base is None:
        base = _process.settings = _from_process_environment()
    innermost = _overrides.get()
    if innermost is None:
        return base
    if innermost.base is not base:  # those of the process changed inside the `with`
        changes = innermost.changes
        innermost = _Override(changes, base, _intern(replace(base, **changes)))
        _overrides.set(innermost)  # up to the end of the `with`, which sets the one around it
    return innermost.settings


def _intern(settings: Settings) -> Settings:
    """Return the one object of these values; `setdefault` is atomic, as they are plain ones."""
    if len(_interned) >= _MAX_INTERNED:
        _interned.clear()
    return _interned.setdefault(_values_of(settings), settings)


def _from_process_environment() -> Settings:
    return _intern(Settings(**from_environment(os.environ)))


def use(backend: str | None = None, **changes: Any) -> Settings:
    """Change settings for the whole process; return those in force afterwards.

    Raises CdNameError for an unknown setting, CdValueError for an invalid value.
    """
    if backend is not None:
        changes["backend"] = backend
    base = _process.settings or _from_process_environment()
    _process.settings = _intern(replace(base, **_check_changes(changes)))
    return current()


@contextmanager
def override(backend: str | None = None, **changes: Any) -> Iterator[Settings]:
    """Change settings inside the `with`, in this thread or task only; yield those in force there.

    Raises CdNameError for an unknown setting, CdValueError for an invalid value.
    """
    if backend is not None:
        changes["backend"] = backend
    outer = _overrides.get()
    settings = _intern(replace(current(), **_check_changes(changes)))
    merged = {**(outer.changes if outer else {}), **changes}
    token = _overrides.set(_Override(merged, _process.settings or Settings(), settings))
    try:
        yield settings
    finally:
        _overrides.reset(token)


def reset() -> None:
    """Forget what `use` changed and read the environment again; returns nothing."""
    _process.settings = None


register(
    lambda: State(
        name="settings of the process; those of a `with`",
        owner=__name__,
        holders=("_process", "_overrides", "_interned"),
        lock="one assignment; a context variable; one `setdefault`",
        on_reset="those of the environment; those of a `with` hold until its end",
        reset=reset,
    )
)


def deciding() -> list[object]:
    """Return the current values of the settings that compiled code may depend on."""
    now = current()
    return [getattr(now, name) for name in _NAMES if name not in _NOT_IN_CODE]


def describe() -> list[tuple[str, str, str]]:
    """Return name, default and meaning of every setting, for documentation and for people."""
    return [(x.name, repr(x.default), str(x.metadata["text"])) for x in fields(Settings)]


def from_environment(environment: Mapping[str, str]) -> Changes:
    """Return the changes by `PLUSEQUALS_*` variables.

    Raises CdNameError for a variable that is no setting, CdValueError for an unreadable value.
    """
    changes: dict[str, Any] = {}
    for variable in sorted(environment):
        if variable.startswith(PREFIX):
            name = variable[len(PREFIX) :].lower()
            if name not in _NAMES:
                raise _unknown_setting(variable, [PREFIX + setting.upper() for setting in _NAMES])
            changes[name] = _parse_value(variable, environment[variable], _type_hint(name))
    return changes


def variable(name: str) -> str:
    """Return an environment variable of others, such as `CC`; empty if not set."""
    return os.environ.get(name, "")


def variables(names: tuple[str, ...], prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the environment variables that are set, by name or by prefix."""
    set_names = (name for name in os.environ if name in names or name.startswith(prefixes))
    return {name: os.environ[name] for name in sorted(set_names)}


@cache
def _type_hint(name: str) -> Any:
    """Return the type of a setting; memoized: those of all of them would take a millisecond."""
    written = SimpleNamespace(__annotations__={name: Settings.__annotations__[name]})
    return get_type_hints(written, globals())[name]


def _unknown_setting(name: str, names: Sequence[str]) -> CdNameError:
    near = nearest(name, names)
    return CdNameError(
        Diagnostic(
            "CD0821",
            f"there is no setting `{name}`",
            notes=("the settings are " + ", ".join(names),),
            helps=(f"did you mean `{near}`?",) if near else (),
        )
    )


def _invalid_value(name: str, value: object, hint: Any) -> CdValueError:
    return CdValueError(
        Diagnostic(
            "CD0822",
            f"`{name}` cannot be {value!r}: it takes {_expected_text(hint)}",
            helps=("`plusequals.settings.describe()` lists every setting and its default",),
        )
    )


def _expected_text(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    return {bool: "on or off", int: "a whole number", float: "a number", str: "text"}[hint]


def _parse_value(variable: str, text: str, hint: Any) -> Any:
    """Return the value of a variable's text for a setting of this type."""
    words = {"1": True, "true": True, "yes": True, "on": True,
             "0": False, "false": False, "no": False, "off": False}  # fmt: skip
    if hint is bool:
        if text.strip().lower() not in words:
            raise _invalid_value(variable, text, hint)
        return words[text.strip().lower()]
    if get_origin(hint) is Literal:
        choices = {str(choice): choice for choice in get_args(hint)}
        if text.strip() not in choices:
            raise _invalid_value(variable, text, hint)
        return choices[text.strip()]
    try:
        value = hint(text)
    except ValueError:
        raise _invalid_value(variable, text, hint) from None
    if hint in (int, float) and not 0 <= value < float("inf"):
        raise _invalid_value(variable, text, hint)
    return value


def _check_changes(changes: dict[str, Any]) -> Changes:
    """Return the changes, if every name is a setting and every value is of its type."""
    for name, value in changes.items():
        if name not in _NAMES:
            raise _unknown_setting(name, _NAMES)
        hint = _type_hint(name)
        try:
            typeguard.check_type(value, hint)
        except typeguard.TypeCheckError:
            raise _invalid_value(name, value, hint) from None
        if hint in (int, float) and not (type(value) in (int, float) and 0 <= value < 1e300):
            raise _invalid_value(name, value, hint)
    return changes
