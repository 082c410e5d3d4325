"""LLVM IR around a vectorized function: the loops over a threadgroup's SIMD-groups."""

from __future__ import annotations

from .simd_forms import SimdForm

__all__ = ["REGION_OFFSETS", "write_driver"]

REGION_OFFSETS = {"first": (0, 4, 8), "size": (12, 16, 20), "nominal": (24, 28, 32)}  # in dispatch.h's region

_POSITIONS = "i32 %gx, i32 %gy, i32 %gz, i32 %x, i32 %y, i32 %z, i32 %index"
_MAX_SIMD_GROUPS = 1024  # of a threadgroup whose 1024 rows have one thread each
_HEAD = "define hidden i32 @metalnb_threads({parameters}, ptr %arena, ptr %frames, i64 %bytes) #1 {{"
_PARAMETERS = "ptr noalias readonly %arguments, ptr noalias readonly %region"


def write_driver(form: SimdForm, *, has_barriers: bool) -> str:
    """Return the IR of ``metalnb_threads``, which runs a threadgroup, and of its callees.

    Parameters
    ----------
    form : SimdForm
    has_barriers : bool
        Whether there are barriers, so that SIMD-groups are coroutines.
    """
    lines = [_HEAD.format(parameters=_PARAMETERS), "begin:"]
    if has_barriers:
        lines.append(f"  %handles = alloca [{_MAX_SIMD_GROUPS} x ptr]")
    lines += _load_region()
    loops = _flat_loop if form.flat else _row_loops
    lines.append(loops(form, has_barriers=has_barriers))
    lines += ["started:", *(_resume_loop() if has_barriers else ["  ret i32 1"]), "}"]
    if not has_barriers and not form.full:
        lines.append(_partial_function(form))
    return "\n".join(lines) + "\n"


def _load_region() -> list[str]:
    """Return IR that loads a threadgroup's position and sizes, and finds its first thread's position in the grid."""
    lines = [""]
    for pointer, value, field in (("p", "n", "size"), ("q", "f", "first"), ("w", "t", "nominal")):
        for axis, offset in zip("xyz", REGION_OFFSETS[field], strict=True):
            if offset:
                lines.append(f"  %{pointer}{axis} = getelementptr i8, ptr %region, i64 {offset}")
            lines.append(f"  %{value}{axis} = load i32, ptr %{f'{pointer}{axis}' if offset else 'region'}")
    return [*lines, *(f"  %g{axis}0 = mul i32 %f{axis}, %t{axis}" for axis in "xyz"), ""]


def _row_loops(form: SimdForm, *, has_barriers: bool) -> str:
    z, y, x = (
        f"\n  %n{axis} = phi i64 [ {first} ], [ %n2, %{last} ]" if has_barriers else ""
        for axis, first, last in (
            ("_z", "0, %begin", "end_y"), ("_y", "%n_z, %rows_z", "end_x"), ("", "%n_y, %rows_y", "next"),
        )
    )
    return f"""  br label %rows_z
rows_z:
  %z = phi i32 [ 0, %begin ], [ %z2, %end_y ]{z}
  %gz = add i32 %gz0, %z
  %zy = mul i32 %z, %ny
  br label %rows_y
rows_y:
  %y = phi i32 [ 0, %rows_z ], [ %y2, %end_x ]{y}
  %gy = add i32 %gy0, %y
  %row = add i32 %zy, %y
  %first = mul i32 %row, %nx
  br label %rows_x
rows_x:
  %x = phi i32 [ 0, %rows_y ], [ %x2, %next ]{x}
  %gx = add i32 %gx0, %x
  %index = add i32 %first, %x
  %remaining = sub i32 %nx, %x
{_group_run(form, has_barriers=has_barriers)}
next:
  %x2 = add i32 %x, {form.width}
  %more_x = icmp ult i32 %x2, %nx
  br i1 %more_x, label %rows_x, label %end_x
end_x:
  %y2 = add i32 %y, 1
  %more_y = icmp ult i32 %y2, %ny
  br i1 %more_y, label %rows_y, label %end_y
end_y:
  %z2 = add i32 %z, 1
  %more_z = icmp ult i32 %z2, %nz
  br i1 %more_z, label %rows_z, label %started"""


def _flat_loop(form: SimdForm, *, has_barriers: bool) -> str:
    number = "\n  %n = phi i64 [ 0, %begin ], [ %n2, %next ]" if has_barriers else ""
    return f"""  %area = mul i32 %nx, %ny
  %threads = mul i32 %area, %nz
  br label %groups
groups:
  %index = phi i32 [ 0, %begin ], [ %index2, %next ]{number}
  %gx = add i32 %gx0, 0
  %gy = add i32 %gy0, 0
  %gz = add i32 %gz0, 0
  %x = add i32 0, 0
  %y = add i32 0, 0
  %z = add i32 0, 0
  %remaining = sub i32 %threads, %index
{_group_run(form, has_barriers=has_barriers)}
next:
  %index2 = add i32 %index, {form.width}
  %more = icmp ult i32 %index2, %threads
  br i1 %more, label %groups, label %started"""


def _group_run(form: SimdForm, *, has_barriers: bool) -> str:
    """Return IR that runs one SIMD-group, or starts it as a coroutine."""
    mask = f"<{form.width} x i1>"
    arguments = f"ptr %arguments, ptr %region, ptr %arena, {_POSITIONS}"
    all_lanes = f", {mask} splat (i1 true)"
    if has_barriers:
        lines = []
        mask_argument = all_lanes
        if not form.full:
            lines = _partial_mask(form)
            mask_argument = f", {mask} %mask"
        return "\n".join([
            *lines,
            f"  %h = call ptr @metalnb_lanes({arguments}{mask_argument}, ptr %frames, i64 %bytes, i64 %n)",
            f"  %slot = getelementptr [{_MAX_SIMD_GROUPS} x ptr], ptr %handles, i64 0, i64 %n",
            "  store ptr %h, ptr %slot",
            "  %n2 = add i64 %n, 1",
            "  %none = icmp eq ptr %h, null",
            "  br i1 %none, label %no_memory, label %next",
        ])  # fmt: skip
    if form.full:
        return f"  call void @metalnb_lanes({arguments}{all_lanes})\n  br label %next"
    return f"""  %is_full = icmp uge i32 %remaining, {form.width}
  br i1 %is_full, label %all_lanes, label %some_lanes
all_lanes:
  call void @metalnb_lanes({arguments}{all_lanes})
  br label %next
some_lanes:
  call void @metalnb_part({arguments}, i32 %remaining)
  br label %next"""


def _partial_mask(form: SimdForm) -> list[str]:
    ramp = ", ".join(f"i32 {i}" for i in range(form.width))
    vector = f"<{form.width} x i32>"
    return [
        f"  %remaining1 = insertelement {vector} poison, i32 %remaining, i64 0",
        f"  %remaining_lanes = shufflevector {vector} %remaining1, {vector} poison, {vector} zeroinitializer",
        f"  %mask = icmp ult {vector} <{ramp}>, %remaining_lanes",
    ]


def _partial_function(form: SimdForm) -> str:
    mask = f"<{form.width} x i1>"
    lines = "\n".join(_partial_mask(form))
    return f"""define internal void @metalnb_part({_PARAMETERS}, ptr %arena, {_POSITIONS}, i32 %remaining) #2 {{
{lines}
  call void @metalnb_lanes(ptr %arguments, ptr %region, ptr %arena, {_POSITIONS}, {mask} %mask)
  ret void
}}"""


def _resume_loop() -> list[str]:
    """Return IR that resumes all SIMD-groups, from barrier to barrier, until all have ended."""
    return f"""  br label %round
round:
  br label %group
group:
  %i = phi i64 [ 0, %round ], [ %i2, %after ]
  %any = phi i1 [ false, %round ], [ %any2, %after ]
  %handle_slot = getelementptr [{_MAX_SIMD_GROUPS} x ptr], ptr %handles, i64 0, i64 %i
  %handle = load ptr, ptr %handle_slot
  %done = call i1 @llvm.coro.done(ptr %handle)
  br i1 %done, label %after, label %run
run:
  call void @llvm.coro.resume(ptr %handle)
  br label %after
after:
  %any2 = phi i1 [ %any, %group ], [ true, %run ]
  %i2 = add i64 %i, 1
  %more_groups = icmp ult i64 %i2, %n2
  br i1 %more_groups, label %group, label %round_end
round_end:
  br i1 %any2, label %round, label %ended
ended:
  ret i32 1
no_memory:
  ret i32 0""".split("\n")

