// Copies from device to threadgroup memory that run while threads compute. Part of metal_compute, in its namespace.
//
// A thread starts copies, commits them as a group, and later waits until all but its last few groups have arrived; a
// barrier then makes them visible to the others. Source: NVIDIA, "PTX ISA", "cp.async".
#define METALNB_ASYNC_COPIES 1

/// Start copying 16 bytes, or writing as many zeros. Both addresses are multiples of 16.
METAL_FUNC void metalnb_copy(threadgroup uint4* to, const __global uint4* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(uint(reinterpret_cast<uintptr_t>(to))), "l"(from),
                 "r"(there ? 16u : 0u) : "memory");
}
METAL_FUNC void metalnb_close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <uint LATER> METAL_FUNC void metalnb_wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" :: "n"(LATER) : "memory");
}
