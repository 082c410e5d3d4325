"""PyObjC's part of the double: selectors that check their arguments as the bridge does, objects, and `objc`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

VERSION = "12.2 (double)"

# Each selector with its arguments' encodings, as the methods below declare them: "@" an object or nil, "#" an
# object, "Q" an unsigned integer, "q" an integer, "Z" a BOOL, "S" an MTLSize, "R" an NSRange, "n" bytes to read, "o"
# the error, "t" an integer that is returned, "p" a pointer that may be NULL.
SELECTORS: dict[str, str] = {}


class MetalAbortError(AssertionError):
    """Raised where Metal's validation would end the process."""


def must(condition: object, message: str) -> None:
    if not condition:
        raise MetalAbortError(message)


def selector(name: str, kinds: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method of Metal that checks the number and kinds of its arguments."""
    SELECTORS[name] = kinds

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        must(method.__name__ == name.replace(":", "_"), f"{method.__name__} is not {name}")
        must(name.count(":") == len(kinds) == len(inspect.signature(method).parameters) - 1, name)

        @functools.wraps(method)
        def call(self: ObjCObject, *arguments: Any) -> Any:
            if len(arguments) != len(kinds):
                message = f"Need {len(kinds)} arguments, got {len(arguments)}"  # PyObjC's wording
                raise TypeError(message)
            for place, (kind, argument) in enumerate(zip(kinds, arguments, strict=True)):
                check(name, place, kind, argument)
            return method(self, *arguments)

        return call

    return decorate


def check(name: str, place: int, kind: str, value: Any) -> None:
    """Raise PyObjC's error for an argument that it cannot pass."""
    from .structures import MTLSize, NSRange

    fits = {
        "@": value is None or isinstance(value, (ObjCObject, str, dict, list)),
        "#": isinstance(value, (ObjCObject, str, dict, list)),
        "Q": type(value) is int and 0 <= value < 2**64,
        "q": type(value) is int and -(2**63) <= value < 2**63,
        "Z": type(value) is bool,
        "S": isinstance(value, MTLSize),
        "R": isinstance(value, NSRange),
        "n": value is None or is_bytes(value),
        "o": value is None,
        "t": value is None,
        "p": value is None,
        "?": value is None or callable(value),
    }[kind]
    if not fits:
        raise ValueError(f"{name} depythonifying argument {place} ({kind!r}), got {type(value).__name__}")


def is_bytes(value: Any) -> bool:
    try:
        return memoryview(value).c_contiguous
    except TypeError:
        return False


class ObjCObject:
    """An object behind the bridge, with its class's methods and no other attributes."""

    @classmethod
    def alloc(cls) -> ObjCObject:
        return cls.__new__(cls)

    def init(self) -> ObjCObject:
        self.__init__()  # type: ignore[misc]  # as Objective-C makes an object
        return self


class NSError(ObjCObject):
    def __init__(self, text: str, code: int = 0, info: dict[str, Any] | None = None) -> None:
        self._text, self._code, self._info = text, code, info or {}

    @selector("localizedDescription")
    def localizedDescription(self) -> str:
        return self._text

    @selector("code")
    def code(self) -> int:
        return self._code

    @selector("userInfo")
    def userInfo(self) -> dict[str, Any]:
        return self._info


class NSURL(ObjCObject):
    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def fileURLWithPath_(cls, path: str) -> NSURL:
        must(type(path) is str, "a path is a string")
        return cls(path)


class Objc:
    """The module ``objc``."""

    __version__ = VERSION

    def __init__(self) -> None:
        self.macos = (15, 0)
        self.registered: dict[bytes, Any] = {}
        self.pools = 0

    def macos_available(self, major: int, minor: int = 0, patch: int = 0) -> bool:
        return (major, minor) <= self.macos

    def registerMetaDataForSelector(self, owner: bytes, name: bytes, table: dict[str, Any]) -> None:
        must(type(owner) is type(name) is bytes, "PyObjC's tables are of bytes")
        self.registered[name] = table

    @contextlib.contextmanager
    def autorelease_pool(self) -> Iterator[None]:
        self.pools += 1
        try:
            yield
        finally:
            self.pools -= 1


objc = Objc()


class VarList:
    """``objc.varlist``: memory of unknown length."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory

    def as_buffer(self, count: int) -> memoryview:
        must(count <= math.prod(self._memory.shape), "beyond the buffer's end")
        return self._memory[:count]
