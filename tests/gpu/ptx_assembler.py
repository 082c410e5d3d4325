"""Where NVIDIA's assembler is."""

import functools
import importlib.util
import shutil
from pathlib import Path


@functools.cache
def assembler() -> str | None:
    """Return the path of ptxas, or None."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    found = [str(path) for folder in folders for path in Path(folder).glob("*/bin/ptxas")]
    return found[0] if found else shutil.which("ptxas")
