// What stands before every cell on the way to PTX: precompiled once for each set of flags.
#pragma once
#include "target/words.h"
#include "nvptx.h"
#include "metal_stdlib"
#include "entry_point.h"
#include "grid_place.h"
#ifdef $CHECKED
#include "checked_kernels/faults.h"
#endif

// Never, which no compiler finds out: no threadgroup has 4 GiB of memory. See loop_exits.py.
inline bool $never() {
    metal::uint bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes == ~0u;
}
