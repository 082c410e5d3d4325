"""The LLVM IR of the validated build, edited: forms that occur in few kernels."""

from metalnb.engine.cpu.validated.access_sites import insert_sites

ACCESSES = """define void @f(ptr %p, <3 x float> %v) {
  call void @__tsan_read4(ptr getelementptr inbounds (i8, ptr @table, i64 4)), !dbg !7
  %1 = load i32, ptr getelementptr inbounds (i8, ptr @table, i64 4), align 4, !dbg !7
  store <3 x float> %v, ptr %p, align 16, !dbg !8
  %2 = load <3 x ptr>, ptr %p, align 8
  %3 = load atomic i64, ptr %p monotonic, align 8
  %4 = call i32 @__tsan_atomic32_exchange(ptr %p, i32 %1, i32 0) #3, !dbg !9
  %5 = call i32 @__tsan_atomic32_exchange(ptr %p, i32 %1, i32 0), !dbg !9
  %6 = add i32 %5, 1
  ret void
}
define void @g(ptr %p, i32 %4) {
  ret void
}
"""


def test_accesses_of_any_address_and_size_are_checked() -> None:
    site = "ptr getelementptr ([6 x i64], ptr @metalnb_sites, i64 0)"
    changed = [line for line in insert_sites(ACCESSES).partition("\n@")[0].splitlines() if "call" in line]
    assert changed == [
        f"  call void @metalnb_load4(ptr getelementptr inbounds (i8, ptr @table, i64 4), {site}), !dbg !7",
        "  call void @__tsan_write_range(ptr %p, i64 12), !dbg !8",
        "  call void @__tsan_read_range(ptr %p, i64 24)",
        "  call void @__tsan_atomic32_store(ptr %p, i32 %1, i32 0), !dbg !9",
        "  %5 = call i32 @__tsan_atomic32_exchange(ptr %p, i32 %1, i32 0), !dbg !9",
    ]
