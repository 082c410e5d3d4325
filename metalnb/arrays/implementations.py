"""The functions behind an array's operators and methods, by name; higher layers register them.

So this layer need not import kernels. ``a + b`` calls ``implementations["add"]``. The names are those of the ops, and
a few more that `library_kernels.array_methods` lists. ``metalnb/__init__.py`` sets `Implementations.find`; the first
look-up loads the kernel library, ``import metalnb`` does not.
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
