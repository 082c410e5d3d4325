// Copying: each thread moves one element, from one layout and dtype to another.
// The compiler is told FROM and TO, the two dtypes. A plain copy reads and writes whole vectors; a strided one gathers.
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

// The same for several rows, of which all threads of a threadgroup are in one at a time.
template <typename X, typename OUT>
kernel void copy_lines(
    device const memory_of<FROM>* x,
    device memory_of<TO>* out,
    constant Walk& walk,
    uint2 p [[thread_position_in_grid]],
    uint2 group [[threadgroup_position_in_grid]]) {
    EACH_LINE(row, walk, group.y)
        keep<TO, OUT>(out + OUT::row(walk, 1, row), walk, 1, p.x, fetch<FROM, X>(x + X::row(walk, 0, row), walk, 0, p.x));
}

#ifdef LINES
#include <metalnb/streamed.h>
template [[host_name("copy_UV")]] [[kernel]] decltype(copy<Whole, Streamed>) copy<Whole, Streamed>;
#define BY_ROWS copy_lines
#else
#define BY_ROWS copy
#endif

template [[host_name("copy_UU")]] [[kernel]] decltype(copy<Whole, Whole>) copy<Whole, Whole>;
template [[host_name("copy_uu")]] [[kernel]] decltype(BY_ROWS<Unit, Unit>) BY_ROWS<Unit, Unit>;
template [[host_name("copy_gu")]] [[kernel]] decltype(copy<Strided, Unit>) copy<Strided, Unit>;
template [[host_name("copy_gg")]] [[kernel]] decltype(copy<Strided, Strided>) copy<Strided, Strided>;
template [[host_name("copy_SU")]] [[kernel]] decltype(copy<One, Whole>) copy<One, Whole>;
template [[host_name("copy_su")]] [[kernel]] decltype(copy<Same, Unit>) copy<Same, Unit>;

// Back to front: known to the compiler, so that it loads whole vectors and turns them.
struct Reverse : Unit {
    static long at(constant Layout&, uint x) { return -long(x); }
};
template [[host_name("copy_ru")]] [[kernel]] decltype(copy<Reverse, Unit>) copy<Reverse, Unit>;
