// Full unrolling of a loop whose length the compiler knows, so that the arrays it indexes stay in registers.
#pragma once

#define UNROLL _Pragma("clang loop unroll(full)")
