// Copying: each thread moves one element, from one layout and dtype to another.
// FROM and TO, the two dtypes, are macros. A plain copy reads and writes vectors; a strided one gathers.
// Source: NumPy's astype and copyto; a float that does not fit an integer is undefined in C++ (conv.fpint).
#include <metalnb/elementwise.h>

template <typename X, typename OUT>
kernel void copy(
    device const memory_of<FROM>* x,
    device memory_of<TO>* out,
    constant Walk& walk,
    uint2 p [[thread_position_in_grid]]) {
    x += X::row(walk, 0, p.y);
    out += OUT::row(walk, 1, p.y);
    keep<TO, OUT>(out, walk, 1, p.x, fetch<FROM, X>(x, walk, 0, p.x));
}

template [[host_name("copy_UU")]] [[kernel]] decltype(copy<Whole, Whole>) copy<Whole, Whole>;
template [[host_name("copy_uu")]] [[kernel]] decltype(copy<Unit, Unit>) copy<Unit, Unit>;
template [[host_name("copy_gu")]] [[kernel]] decltype(copy<Strided, Unit>) copy<Strided, Unit>;
template [[host_name("copy_gg")]] [[kernel]] decltype(copy<Strided, Strided>) copy<Strided, Strided>;
template [[host_name("copy_SU")]] [[kernel]] decltype(copy<One, Whole>) copy<One, Whole>;
template [[host_name("copy_su")]] [[kernel]] decltype(copy<Same, Unit>) copy<Same, Unit>;

// Back to front: the stride is a compile-time constant, so the compiler loads vectors and reverses them.
struct Reverse : Unit {
    static long at(constant Layout&, uint x) { return -long(x); }
};
template [[host_name("copy_ru")]] [[kernel]] decltype(copy<Reverse, Unit>) copy<Reverse, Unit>;

#ifdef STREAMED
#include <metalnb/streamed.h>
template [[host_name("copy_UV")]] [[kernel]] decltype(copy<Whole, Streamed>) copy<Whole, Streamed>;
#endif
