"""The engines that check a kernel's accesses and stop its loops: `cuda` where there is a GPU."""

import pytest

import metalnb as mnb
from metalnb import engine as engines

__all__ = ["ENGINES", "no_gpu"]


def no_gpu() -> str:
    """Return why the engine `cuda` is not here; an empty string where it is."""
    try:
        engines.named("cuda")
    except mnb.EngineUnavailable as error:
        return str(error)
    return ""


ENGINES = ("cpu", pytest.param("cuda", marks=pytest.mark.skipif(bool(no_gpu()), reason=no_gpu())))
