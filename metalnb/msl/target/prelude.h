// What stands before every cell on the way to the device: precompiled once for each set of flags.
#pragma once
#include "words.h"
#include "opencl.h"
#include "metal_stdlib"
#include "entry.h"
