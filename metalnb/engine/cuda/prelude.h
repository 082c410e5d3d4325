// What stands before every cell on the way to PTX: precompiled once for each set of flags.
#pragma once
#include "target/words.h"
#include "nvptx.h"
#include "metal_stdlib"
#include "entry_point.h"
#include "grid_place.h"
