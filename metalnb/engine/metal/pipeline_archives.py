"""Pipelines on disk: what Metal's compiler made for this GPU, so that another process does not have it made again.

Metal compiles in two steps: the author's text to a library, and a function of it to code of the GPU. A binary archive
holds the second, which is the longer one. It is a file of its own in the cache for each kernel.
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
        """Return a function's pipeline, from the disk or put there; None where Metal makes no archive of it.

        Parameters
        ----------
        function : MTLFunction
        *parts : str
            All that it was compiled from.
        """
        key = cache.digest(self._machine, *parts)
        kept = cache.store().get(key, _KIND)
        with contextlib.suppress(OSError), cache.store().scratch() as folder:
            file = folder / "pipeline.metallib"
            if kept is not None:
                file.write_bytes(kept)
                state = self._state(function, self._archive(file))
                if state is not None:  # else Metal no longer takes it
                    return state
            return self._made(function, key, folder / "new.metallib")
        return None

    def _made(self, function: Any, key: str, file: Path) -> Any:
        """Have a pipeline compiled into an archive, and keep that."""
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
        """Open an archive, or make an empty one; None when Metal does not."""
        described = self._found.metal.MTLBinaryArchiveDescriptor.alloc().init()
        if file is not None:
            described.setUrl_(self._url(file))
        archive, _ = self._device.newBinaryArchiveWithDescriptor_error_(described, None)
        return archive

    def _state(self, function: Any, archive: Any) -> Any:
        """Return the pipeline that an archive has; None when it has none."""
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
