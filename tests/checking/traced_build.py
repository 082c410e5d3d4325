"""Where the traced build runs, and how its tests run."""

import sys

import pytest

__all__ = ["TRACED"]

TRACED = [
    pytest.mark.skipif(sys.platform != "linux", reason="the traced build runs under Linux"),
    pytest.mark.filterwarnings("ignore::metalnb.MetalnbWarning"),
]
