"""The functions behind an array's operators and methods, by name: filled from above, as arrays do not import kernels.

``implementations["add"]`` is what ``a + b`` calls. The names are the ops' names, and the few others that
`library_kernels.array_methods` lists. ``metalnb/__init__.py`` sets `Implementations.find`; the kernel library is
loaded by the first look-up, not by ``import metalnb``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Implementations", "implementations"]


class Implementations(dict[str, Callable[..., Any]]):
    """Functions by name, each looked up once.

    Attributes
    ----------
    find : callable
        Returns the function with a name.
    """

    find: Callable[[str], Callable[..., Any]]

    def __missing__(self, name: str) -> Callable[..., Any]:
        function = self[name] = self.find(name)
        return function


implementations = Implementations()
