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
    bindings : Bindings
    device : MTLDevice
    """

    def __init__(self, bindings: Bindings, device: Any) -> None:
        self._bindings = bindings
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
        data = cache.store().get(key, _KIND)
        with contextlib.suppress(OSError), cache.store().scratch() as folder:
            file = folder / "pipeline.metallib"
            if data is not None:
                file.write_bytes(data)
                state = self._state(function, self._archive(file))
                if state is not None:  # otherwise Metal no longer accepts the archive
                    return state
            return self._compile(function, key, folder / "new.metallib")
        return None

    def _compile(self, function: Any, key: str, file: Path) -> Any:
        """Compile a pipeline into an archive, and store the archive."""
        archive = self._archive(None)
        if archive is None:
            return None
        is_added, _ = archive.addComputePipelineFunctionsWithDescriptor_error_(self._descriptor(function), None)
        if not is_added:
            return None
        is_saved, _ = archive.serializeToURL_error_(self._url(file), None)
        if is_saved:
            cache.store().put(key, _KIND, file.read_bytes())
        return self._state(function, archive)

    def _archive(self, file: Path | None) -> Any:
        """Open an archive, or create an empty one; None if Metal refuses."""
        descriptor = self._bindings.metal.MTLBinaryArchiveDescriptor.alloc().init()
        if file is not None:
            descriptor.setUrl_(self._url(file))
        archive, _ = self._device.newBinaryArchiveWithDescriptor_error_(descriptor, None)
        return archive

    def _state(self, function: Any, archive: Any) -> Any:
        """Return the pipeline in an archive; None if the archive has none."""
        if archive is None:
            return None
        descriptor = self._descriptor(function)
        descriptor.setBinaryArchives_([archive])
        option = self._bindings.metal.MTLPipelineOptionFailOnBinaryArchiveMiss
        state, _ = self._device.newComputePipelineStateWithDescriptor_options_reflection_error_(
            descriptor, option, None, None
        )
        return state

    def _descriptor(self, function: Any) -> Any:
        descriptor = self._bindings.metal.MTLComputePipelineDescriptor.alloc().init()
        descriptor.setComputeFunction_(function)
        return descriptor

    def _url(self, file: Path) -> Any:
        return self._bindings.metal.NSURL.fileURLWithPath_(str(file))
