// Memory that is asked for before its turn, for CPUs, which fetch by themselves too little of what is walked in order: what
// is written, too, since a line is read before it is written to.
// Idea: once in two kilobytes, each lane of a SIMD-group asks for a line of the next two. What lies in a core's own cache
// is not worth that: the host decides. To ask for what is beyond an array's end does nothing.
#pragma once
#include <metal_stdlib>
using namespace metal;

constant constexpr uint LINE = 64;         // bytes
constant constexpr uint ASKED = 32 * LINE;  // a line for each lane

// The two kilobytes that follow those from `place` on.
inline void ask(device const void* place, uint lane) { $ahead((device const char*)place + ASKED + lane * LINE); }

// The same where each SIMD-group has 32 elements: the first of those that share two kilobytes asks.
template <typename T> inline void ask_of(device const T* whole, uint place, uint lane, uint simd) {
    if (simd % (LINE / sizeof(T)) == 0) ask(whole + (place - lane), lane);
}
