// What stands before every cell on the way to the device: precompiled once for each set of flags.
#pragma once
#include "target/words.h"
#include "target/opencl.h"
#include "metal_stdlib"
#include "entry_point.h"
