"""Pipelines on disk: code that Metal has compiled for this GPU, for other processes to reuse.

Metal compiles in two steps: the author's text to a library, and a function of the library to GPU code. A binary archive
holds the result of the second step, which takes longer. The cache has one file per kernel.
"""

from __future__ import annotations

import contextlib
import platform
from pathlib import Path
from typing import Any

from metalnb import cache

from .bindings import Bindings

__all__ = ["PipelineArchives"]

_KIND = "metal"


class PipelineArchives:
    """The archives of one device.

    Parameters
    ----------
    found : Bindings
    device : MTLDevice
    """

    def __init__(self, found: Bindings, device: Any) -> None:
        self._found = found
        self._device = device
        self._machine = f"{device.name()}, {platform.mac_ver()[0]}"

    def state(self, function: Any, *parts: str) -> Any:
        """Return a function's pipeline, loaded from disk or compiled and stored; None if Metal cannot archive it.

        Parameters
        ----------
        function : MTLFunction
        *parts : str
            Everything that it was compiled from.
        """
        key = cache.digest(self._machine, *parts)
        kept = cache.store().get(key, _KIND)
        with contextlib.suppress(OSError), cache.store().scratch() as folder:
            file = folder / "pipeline.metallib"
            if kept is not None:
                file.write_bytes(kept)
                state = self._state(function, self._archive(file))
                if state is not None:  # otherwise Metal no longer accepts it
                    return state
            return self._made(function, key, folder / "new.metallib")
        return None

    def _made(self, function: Any, key: str, file: Path) -> Any:
        """Compile a pipeline into an archive, and store the archive."""
        archive = self._archive(None)
        if archive is None:
            return None
        added, _ = archive.addComputePipelineFunctionsWithDescriptor_error_(self._described(function), None)
        if not added:
            return None
        saved, _ = archive.serializeToURL_error_(self._url(file), None)
        if saved:
            cache.store().put(key, _KIND, file.read_bytes())
        return self._state(function, archive)

    def _archive(self, file: Path | None) -> Any:
        """Open an archive, or create an empty one; None if Metal refuses."""
        described = self._found.metal.MTLBinaryArchiveDescriptor.alloc().init()
        if file is not None:
            described.setUrl_(self._url(file))
        archive, _ = self._device.newBinaryArchiveWithDescriptor_error_(described, None)
        return archive

    def _state(self, function: Any, archive: Any) -> Any:
        """Return the pipeline in an archive; None if there is none."""
        if archive is None:
            return None
        described = self._described(function)
        described.setBinaryArchives_([archive])
        option = self._found.metal.MTLPipelineOptionFailOnBinaryArchiveMiss
        state, _ = self._device.newComputePipelineStateWithDescriptor_options_reflection_error_(
            described, option, None, None
        )
        return state

    def _described(self, function: Any) -> Any:
        described = self._found.metal.MTLComputePipelineDescriptor.alloc().init()
        described.setComputeFunction_(function)
        return described

    def _url(self, file: Path) -> Any:
        return self._found.metal.NSURL.fileURLWithPath_(str(file))
