"""Run attention as planned."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...engine import named
from ..planning.attention_plan import AttentionShape, plan_attention
from ..planning.device import Device, device_of
from .launcher import Launch, is_aligned
from .programs import compile_templates
from .reduction_launch import tag

__all__ = ["attend"]

_FLOAT = np.dtype(np.float32)
_LAUNCHES = 512  # plans to keep
_WORD = 16  # rows are read in units of this many bytes if their size is a multiple of it


def attend(
    q: Array, k: Array, v: Array, mask: Array | None, *, query_heads_per_key_head: int, causal: bool, scale: float
) -> Array | None:
    """Return attention's result, or None if no kernel takes rows of this width.

    Parameters
    ----------
    q : Array (…, L, E)
    k : Array (…, S, E)
    v : Array (…, S, V)
        Contiguous, of the same dtype and not empty; several heads of q may share a head of k and v.
    mask : Array (L, S) or (…, L, S), optional
        Contiguous, float32.
    query_heads_per_key_head : int
    causal : bool
    scale : float
        See `scaled_dot_product_attention`.
    """
    out = empty((*q.shape[:-1], v.shape[-1]), q.dtype, q.engine)
    from_q, from_k, from_v = (x.offset // x.itemsize for x in (q, k, v))
    starts = (from_q, from_k, from_v, 0 if mask is None else mask.offset // mask.itemsize)
    are_aligned = all(
        is_aligned(x, _WORD) and not x.offset % _WORD and not x.shape[-1] * x.itemsize % _WORD for x in (k, v)
    )
    pitch = q.shape[-2] * k.shape[-2] if mask is not None and mask.ndim > 2 else 0
    shape = AttentionShape(
        heads=math.prod(q.shape[:-2]), query_heads_per_key_head=query_heads_per_key_head, queries=q.shape[-2],
        keys=k.shape[-2], head_size=q.shape[-1], value_size=v.shape[-1], kind=tag(q.dtype), masked=mask is not None,
        causal=causal, mask_pitch=pitch, starts=starts, scale=scale, rows_aligned=are_aligned,
    )  # fmt: skip
    steps = _launches(shape, q.engine.name, device_of(q.engine.caps))
    if not steps:
        return None
    memory = {"q": q, "k": k, "v": v, "m": q if mask is None else mask, "o": out}
    for launch, arguments, parts in steps:
        if parts:
            memory["p"] = empty((parts,), _FLOAT, q.engine)
        launch.start_on(tuple([memory[index] for index in arguments]))
    return out


@functools.lru_cache(_LAUNCHES)
def _launches(shape: AttentionShape, engine_name: str, device: Device) -> tuple[tuple[Launch, str, int], ...]:
    """Return the launches, the memory of each launch's buffers, and the number of floats for parts."""
    engine = named(engine_name)
    launches = []
    for step in plan_attention(shape, device):
        launch = Launch(_kernel(step.file, step.template, engine_name), step.grid, step.threadgroup, (step.packed,))
        launches.append((launch.bind_records(engine), step.arguments, step.parts))
    return tuple(launches)


@functools.cache
def _kernel(file: str, template: str, engine: str) -> Any:
    name = template.partition("<")[0]
    return compile_templates(file, {name: template}, engine)[name].binary
