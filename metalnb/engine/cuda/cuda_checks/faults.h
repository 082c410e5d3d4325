// The function that a checked kernel calls where it finds an access out of bounds (engine/robust), and its records.
#pragma once

// The record of a check's first fault; `local` is the thread's position in its threadgroup.
struct $fault { unsigned recorded; $uint3 group, local; unsigned unused; long offset; };

// The flag that loops read, in the GPU's memory; and a word in the host's memory, which is set once a fault is
// recorded.
struct $flag { unsigned stop, unused; volatile __global unsigned* host_flag; };

/// Record a check's first fault. `first` and `size` are those of `$launch`.
extern "C" __attribute__((cold, noinline, used)) void metalnb_fault(
    __global $fault* faults, const __global $flag* flag, unsigned check, long offset, unsigned first_x,
    unsigned first_y, unsigned first_z, unsigned width, unsigned height
) {
    __global $fault* f = faults + check;
    if (__scoped_atomic_exchange_n(&f->recorded, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)) return;
    const unsigned row = $register(tid_z) * $register(ntid_y) + $register(tid_y);
    const unsigned index = row * $register(ntid_x) + $register(tid_x);
    f->group = {$register(ctaid_x) + first_x, $register(ctaid_y) + first_y, $register(ctaid_z) + first_z};
    f->local = {index % width, index / width % height, index / (width * height)};
    f->offset = offset;
    __nvvm_membar_sys();
    *flag->host_flag = 1;
}
