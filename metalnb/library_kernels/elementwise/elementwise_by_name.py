"""The elementwise ops by name, for other ops to call: ``BY_NAME["exp"]``."""

from . import binary, ternary, unary

__all__ = ["BY_NAME"]

BY_NAME = {row.name: row for row in (*unary.ROWS, *binary.ROWS, *ternary.ROWS)}
