"""Barriers: a SIMD-group is a coroutine that suspends at each barrier (LLVM, "Coroutines in LLVM").

All SIMD-groups of a threadgroup run to their first barrier, one after another, then each to its next. LLVM splits the
function at the barriers and keeps the values alive across them in a frame. This is pocl's loop over work-items between
barriers, one level up, and it allows barriers in any control flow.
"""

from __future__ import annotations

from .text_emitter import Emitter

__all__ = ["ALIGNMENT", "write_coroutine_end", "write_coroutine_start", "write_suspension"]

ALIGNMENT = 128  # alignment of a frame in bytes: a vector of 32 floats

_SUSPEND = "llvm.coro.suspend"


def write_suspension(emitter: Emitter) -> None:
    """Write a barrier."""
    callee = emitter.declare(_SUSPEND, "i8", "token", "i1")
    state = emitter.op(f"call i8 {callee}(token none, i1 false)")
    resumed = emitter.fresh_name("resumed")
    emitter.do(f"switch i8 {state}, label %suspended [i8 0, label {resumed}  i8 1, label %suspended]")
    emitter.label(resumed)


def write_coroutine_start(emitter: Emitter) -> None:
    """Write a coroutine's start: take the next frame in ``%frames``, or end the coroutine if none is left."""
    emitter.declare("llvm.coro.id", "token", "i32", "ptr", "ptr", "ptr")
    emitter.declare("llvm.coro.size.i64", "i64")
    emitter.declare("llvm.coro.begin", "ptr", "token", "ptr")
    for line in (
        f"%id = call token @llvm.coro.id(i32 {ALIGNMENT}, ptr null, ptr null, ptr null)",
        "%size = call i64 @llvm.coro.size.i64()",
        f"%padded = add i64 %size, {ALIGNMENT - 1}",
        f"%apart = and i64 %padded, -{ALIGNMENT}",
        "%from = mul i64 %apart, %number",
        "%until = add i64 %from, %apart",
        "%fits = icmp ule i64 %until, %bytes",
        "br i1 %fits, label %begin, label %full",
    ):
        emitter.do(line)
    emitter.label("%full")
    emitter.do("ret ptr null")
    emitter.label("%begin")
    emitter.do("%frame = getelementptr i8, ptr %frames, i64 %from")
    emitter.do("%handle = call ptr @llvm.coro.begin(token %id, ptr %frame)")


def write_coroutine_end(emitter: Emitter) -> None:
    """Write a coroutine's end."""
    callee = emitter.declare(_SUSPEND, "i8", "token", "i1")
    emitter.declare("llvm.coro.end", "void", "ptr", "i1", "token")
    emitter.do(f"%last = call i8 {callee}(token none, i1 true)")
    emitter.do("switch i8 %last, label %suspended [i8 0, label %never  i8 1, label %suspended]")
    emitter.label("%never")
    emitter.do("unreachable")
    emitter.label("%suspended")
    emitter.do("call void @llvm.coro.end(ptr %handle, i1 false, token none)")
    emitter.do("ret ptr %handle")
