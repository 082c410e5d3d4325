// Gather and scatter: elements are moved by an index that is data. Elements are moved as bits, so that a kernel serves
// all dtypes of the same width. A negative index counts from the end. An index out of range accesses no memory, and the
// first such index is reported. Writes to the same position are ordered on every run: the last index in memory order
// wins, and sums add in memory order. Source: Blelloch, "Prefix Sums and Their Applications", 1990 (operations by
// segments); the semantics are those of NumPy's take and put.
#include <metalnb/lanes.h>
#include <metalnb/updates.h>

constant bool ALONE [[function_constant(3)]];  // inner is 1: elements are moved one by one, not by rows

// An array of outer × n × inner elements, whose axis of length n is indexed by `count` indices.
struct Axis {
    ulong count;
    uint n;
    uint inner;
};

// A thread's element: i of the row that index k names, in block o. Threads along x follow the elements in memory.
struct Item {
    uint i, k, o, inner;

    Item(uint3 at, uint inner_size) : i(ALONE ? 0 : at.x), k(ALONE ? at.x : at.y), o(ALONE ? at.y : at.z),
        inner(ALONE ? 1 : inner_size) {}
    ulong in(ulong rows, ulong row) const { return (o * rows + row) * inner + i; }
};

constant constexpr uint NO_FAULT = 0xFFFFFFFFu;

// Convert an index to a position on an axis of length n; return false if it is out of range.
inline bool resolve(long index, uint n, thread uint& resolved) {
    const long wrapped = index < 0 ? index + long(n) : index;
    resolved = uint(wrapped);
    return ulong(wrapped) < ulong(n);
}

// Record the first index that is out of range.
inline void report(device atomic_uint& fault, ulong position) {
    atomic_fetch_min_explicit(&fault, uint(min(position, ulong(NO_FAULT - 1))), memory_order_relaxed);
}

// out[o][k][i] = x[o][indices[k]][i].
template <typename T>
kernel void take(device const T* x [[buffer(0)]],
                 device const long* indices [[buffer(1)]],
                 device T* out [[buffer(2)]],
                 constant Axis& axis [[buffer(3)]],
                 device atomic_uint& fault [[buffer(4)]],
                 uint3 at [[thread_position_in_grid]]) {
    const Item item(at, axis.inner);
    uint resolved;
    const bool inside = resolve(indices[item.k], axis.n, resolved);
    if (!inside) report(fault, item.k);
    out[item.in(axis.count, item.k)] = x[item.in(axis.n, inside ? resolved : 0)];
}

// The same for single elements, on devices with slow loads: a thread has SEVERAL elements, a threadgroup's length
// apart, and all their loads are in flight before the first is needed. Threadgroups: x is the indices, y the block.
constant constexpr uint SEVERAL = 8, THREADS = 256;

template <typename T>
kernel void take_several(device const T* x [[buffer(0)]],
                         device const long* indices [[buffer(1)]],
                         device T* out [[buffer(2)]],
                         constant Axis& axis [[buffer(3)]],
                         device atomic_uint& fault [[buffer(4)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint2 own   [[thread_position_in_threadgroup]]) {
    const ulong count = axis.count, first = group.x * ulong(SEVERAL * THREADS) + own.x;
    const uint n = axis.n;
    x += group.y * ulong(n);
    out += group.y * count;
    long index[SEVERAL];
    T value[SEVERAL];
    bool wild = false;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < SEVERAL; ++i) {
        const ulong k = first + i * THREADS;
        // Beyond the end, the last index is repeated: a branch would separate the loads.
        index[i] = indices[k < count ? k : count - 1];
    }
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < SEVERAL; ++i) {
        uint resolved;
        const bool inside = resolve(index[i], n, resolved);
        wild = wild || !inside;
        value[i] = x[inside ? resolved : 0];
    }
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < SEVERAL; ++i) {
        const ulong k = first + i * THREADS;
        if (k < count) out[k] = value[i];
    }
    if (!wild) return;
    for (uint i = 0; i < SEVERAL; ++i) {
        const ulong k = first + i * THREADS;
        uint resolved;
        if (k < count && !resolve(indices[k], n, resolved)) report(fault, k);
    }
}

// out[o][k][i] = x[o][indices[o][k][i]][i].
template <typename T>
kernel void take_along(device const T* x [[buffer(0)]],
                       device const long* indices [[buffer(1)]],
                       device T* out [[buffer(2)]],
                       constant Axis& axis [[buffer(3)]],
                       device atomic_uint& fault [[buffer(4)]],
                       uint3 at [[thread_position_in_grid]]) {
    const Item item(at, axis.inner);
    const ulong position = item.in(axis.count, item.k);
    uint resolved;
    const bool inside = resolve(indices[position], axis.n, resolved);
    if (!inside) report(fault, position);
    out[position] = x[item.in(axis.n, inside ? resolved : 0)];
}

// Before anything is written, check that all indices are in range, and store their positions, counted from the start.
kernel void resolve_indices(device const long* indices [[buffer(0)]],
                            device uint* positions [[buffer(1)]],
                            constant uint& n [[buffer(2)]],
                            device atomic_uint& fault [[buffer(3)]],
                            uint k [[thread_position_in_grid]]) {
    uint resolved;
    if (!resolve(indices[k], n, resolved)) report(fault, k);
    positions[k] = resolved;
}

// Combine several index arrays into one position: places += index × stride.
kernel void combine_indices(device const long* indices [[buffer(0)]],
                            device long* positions [[buffer(1)]],
                            constant uint& n [[buffer(2)]],
                            constant long& stride [[buffer(3)]],
                            constant uint& first [[buffer(4)]],
                            device atomic_uint& fault [[buffer(5)]],
                            uint k [[thread_position_in_grid]]) {
    uint resolved;
    const bool inside = resolve(indices[k], n, resolved);
    if (!inside) report(fault, k);
    positions[k] = (first ? 0 : positions[k]) + (inside ? long(resolved) * stride : 0);
}

// ---- Scatter. The updates are sorted by their positions' high bits and otherwise in memory order (by a radix sort's
// pass): 256 buckets, and starts[b] is the start of the b-th. A SIMD-group owns one bucket, so no other writes to its
// positions, and it applies the updates in order. If each thread is a core, scatter_serial.metal does the elements.

// Elements: of 32 updates at a time, those to the same position are applied one after another.
template <typename Op>
inline void scatter_elements(device typename Op::Memory* x, device const uint* positions,
                             device const typename Op::Memory* values, constant Updates& updates, uint begin, uint end,
                             uint lane) {
    for (uint base = begin; base < end; base += SIMD) {
        const uint k = base + lane;
        const bool valid = k < end;
        const uint resolved = valid ? positions[k] : 0;
        const uint turn = before(peers_of(resolved, valid, updates.bits), lane);
        for (uint now = 0; votes_for(valid && turn >= now) != 0; ++now) {
            if (valid && turn == now) x[resolved] = Op::update(x[resolved], values[updates.rows == 1 ? 0 : k]);
            threadgroup_barrier(mem_flags::mem_device);
        }
    }
}

// x[places[k]][…] = update(x[places[k]][…], values[k][…]), for k in order.
template <typename Op>
kernel void scatter(device typename Op::Memory* x [[buffer(0)]],
                    device const uint* positions [[buffer(1)]],
                    device const uint* starts [[buffer(2)]],
                    device const typename Op::Memory* values [[buffer(3)]],
                    constant Updates& updates [[buffer(4)]],
                    uint2 group [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]]) {
    const uint bucket = group.y;
    const uint begin = starts[bucket];
    const uint end = bucket + 1 < BUCKETS ? starts[bucket + 1] : updates.count;
    if (ALONE) {
        scatter_elements<Op>(x, positions, values, updates, begin, end, lane);
        return;
    }
    const uint i = group.x * SIMD + lane;
    if (i >= updates.inner) return;
    for (uint k = begin; k < end; ++k) {
        device typename Op::Memory* target = x + ulong(positions[k]) * updates.inner + i;
        *target = Op::update(*target, values[ulong(updates.rows == 1 ? 0 : k) * updates.inner + i]);
    }
}

#define MAKE(name, suffix, T) template [[host_name(#name "_" #suffix)]] [[kernel]] decltype(name<T>) name<T>;
#define FOR_WIDTH(bits, U) MAKE(take, bits, U) MAKE(take_several, bits, U) MAKE(take_along, bits, U)
FOR_WIDTH(8, uchar)
FOR_WIDTH(16, ushort)
FOR_WIDTH(32, uint)
FOR_WIDTH(64, ulong)
MAKE_SCATTERS
#undef FOR_WIDTH
#undef MAKE
#undef MAKE_SCATTERS
#undef MAKE_SCATTER
