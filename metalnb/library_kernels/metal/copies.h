// Copies of 16 bytes from device to threadgroup memory: started, committed in groups, and waited for until all but the
// last few groups have arrived. If the device has no asynchronous copies, each copy is done immediately.
#pragma once
#include <metal_stdlib>
using namespace metal;

#ifndef METALNB_ASYNC_COPIES
inline void metalnb_copy(threadgroup uint4* to, device const uint4* from, bool there) { *to = there ? *from : uint4(0); }
inline void metalnb_close_copies() {}
template <uint LATER> inline void metalnb_wait_for_copies() {}
#endif
