"""The flags with which clang inlines every call of a kernel, including those in code that it expects to run rarely."""

from __future__ import annotations

__all__ = ["INLINE_ALL"]

_THRESHOLDS = ("inline-threshold", "inlinehint-threshold", "inline-cold-callsite-threshold", "inlinecold-threshold")
INLINE_ALL = tuple(word for name in _THRESHOLDS for word in ("-mllvm", f"-{name}=1000000"))
