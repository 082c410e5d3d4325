// Included before every cell that is compiled to PTX; precompiled once for each set of flags.
#pragma once
#include "target/words.h"
#include "nvptx.h"
#include "metal_stdlib"
#include "entry_point.h"
#include "grid_position.h"
#ifdef $CHECKED
#include "cuda_checks/faults.h"
#endif

// Always false, though the compiler cannot know it: no threadgroup has 4 GiB of memory. See loop_exits.py.
inline bool $never() {
    metal::uint bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes == ~0u;
}
