"""TODO."""

from .case import Table

table = Table()
