// What stands before every cell on the way to the device: precompiled once for each set of flags.
#pragma once
#include "target/words.h"
#include "target/opencl.h"
#include "metal_stdlib"
#include "entry_point.h"

// Never, which no compiler finds out: a grid has one to three dimensions. See loop_exits.py.
metal::uint $get_work_dim() __asm__("_Z12get_work_dimv") __attribute__((const));
inline bool $never() { return $get_work_dim() > 31; }
