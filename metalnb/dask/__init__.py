"""Kernels over arrays that are larger than memory, or spread over workers: ``mnb.dask.map_blocks(kernel, x)``.

Dask splits arrays into blocks and runs functions on them, in threads, in processes or on other machines. This package
turns a kernel into such a function. Input: our kernels or ops, and Dask arrays. Output: Dask arrays, not yet computed.
A kernel is sent as its source and options; each worker compiles it once, or loads it from the disk cache if workers
share one. Dask is an extra (``pip install "metalnb[dask]"``); only this package imports it.
"""

from __future__ import annotations

try:
    import dask.array
except ImportError as error:
    raise ImportError('mnb.dask needs Dask: pip install "metalnb[dask]"') from error

from metalnb.arrays.array import Array

from .block_maps import map_blocks, map_overlap
from .tree_reduction import reduce

__all__ = ["map_blocks", "map_overlap", "reduce"]

dask.array.register_chunk_type(Array)  # operations on a Dask array and one of ours then treat ours as a block
