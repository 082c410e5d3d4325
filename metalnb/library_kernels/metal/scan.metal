// Scans combine every element with all elements before it: running sums and products, by any monoid of reduce.metal.
// Idea: reduce, then scan. One dispatch reduces each stretch of a row to its total, a second scans the few totals, and
// a third scans each stretch, starting from the total before it. No threadgroup waits for another, so
// they may run in any order. Source: D. Merrill and A. Grimshaw, "Parallel Scan for Stream Architectures", 2009; across
// the lanes of a SIMD-group, W. D. Hillis and G. L. Steele, "Data Parallel Algorithms", CACM 29 (1986).
#pragma once
#include <metalnb/reduce.metal>

struct Scan {
    long offset;        // of the first element, in elements
    long outer_pitch;   // from one outer index to the next
    long pitch;         // from one element of a scan to the next (columns)
    long out_pitch;     // of the result, from one outer index to the next
    uint initial;       // whether the result starts with the identity, and so has one element more
    uint stretch;       // elements of a scan that one SIMD-group takes
    uint rest;          // … that the last one takes
    uint parts;         // SIMD-groups to a scan
    uint width;         // adjacent scans: 1 for rows
    uint tiles;         // SIMD-groups across `width`
};

// Return the value of the lane `delta` lanes before, if there is one. SIMD-groups exchange at most 32 bits (MSL 6.9.2).
template <typename A> inline A from_before(A value, ushort delta) {
    if constexpr (sizeof(A) == 8) {
        const uint2 halves = as_type<uint2>(value);
        return as_type<A>(uint2(simd_shuffle_up(halves.x, delta), simd_shuffle_up(halves.y, delta)));
    } else {
        return simd_shuffle_up(value, delta);
    }
}

template <typename A> inline A from_last(A value) {
    if constexpr (sizeof(A) == 8) {
        const uint2 halves = as_type<uint2>(value);
        return as_type<A>(uint2(simd_broadcast(halves.x, LANES - 1), simd_broadcast(halves.y, LANES - 1)));
    } else {
        return simd_broadcast(value, LANES - 1);
    }
}

// Combine each lane's value with the values of all lanes before it; after step d, it includes the 2d - 1 lanes before.
template <typename M, typename A = typename M::acc> inline A scan_lanes(A value, uint lane) {
    for (ushort delta = 1; delta < LANES; delta *= 2) {
        const A before = from_before(value, delta);
        value = lane >= delta ? M::combine(before, value) : value;
    }
    return value;
}

// Turn the totals of stretches into the sum before each stretch; one thread does this for each scan.
template <typename M>
kernel void scan_totals(device typename M::acc* totals, constant Scan& s, uint index [[thread_position_in_grid]]) {
    device typename M::acc* total = totals + index / s.width * ulong(s.parts) * s.width + index % s.width;
    typename M::acc before = M::identity();
    uint part = 0;
    for (; part + IN_FLIGHT <= s.parts; part += IN_FLIGHT) {
        typename M::acc values[IN_FLIGHT];
        for (uint k = 0; k < IN_FLIGHT; ++k) values[k] = total[k * s.width];
        for (uint k = 0; k < IN_FLIGHT; ++k, total += s.width) {
            *total = before;
            before = M::combine(before, values[k]);
        }
    }
    for (; part < s.parts; ++part, total += s.width) {
        const typename M::acc values = *total;
        *total = before;
        before = M::combine(before, values);
    }
}

// Return another lane's value.
template <typename A> inline A from_place(A value, ushort lane) {
    if constexpr (sizeof(A) == 8) {
        const uint2 halves = as_type<uint2>(value);
        return as_type<A>(uint2(simd_shuffle(halves.x, lane), simd_shuffle(halves.y, lane)));
    } else {
        return simd_shuffle(value, lane);
    }
}

// The same for devices with slow loads and scans of many totals: a threadgroup for each scan, several totals to a
// thread at a time.
template <typename M>
kernel void scan_totals_shared(device typename M::acc* totals, constant Scan& s,
                               uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                               uint simd [[simdgroup_index_in_threadgroup]],
                               uint simds [[simdgroups_per_threadgroup]]) {
    using A = typename M::acc;
    constexpr uint EACH = 16;
    threadgroup A sums[LANES];
    totals += row / s.width * ulong(s.parts) * s.width + row % s.width;
    A carry = M::identity();
    for (uint at = 0; at < s.parts; at += simds * LANES * EACH) {
        const uint first = at + (simd * LANES + lane) * EACH;
        A values[EACH], sum = M::identity();
        for (uint i = 0; i < EACH; ++i) values[i] = first + i < s.parts ? totals[(first + i) * s.width] : M::identity();
        for (uint i = 0; i < EACH; ++i) sum = M::combine(sum, values[i]);
        const A through = scan_lanes<M>(sum, lane), before = from_before(through, 1);
        if (lane == LANES - 1) sums[simd] = through;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const A groups = scan_lanes<M>(lane < simds ? sums[lane] : M::identity(), lane);
        const A earlier = from_place(groups, simd ? simd - 1 : 0);
        A running = simd ? M::combine(carry, earlier) : carry;
        running = lane ? M::combine(running, before) : running;
        for (uint i = 0; i < EACH; ++i) {
            if (first + i < s.parts) totals[(first + i) * s.width] = running;
            running = M::combine(running, values[i]);
        }
        carry = M::combine(carry, from_place(groups, simds - 1));
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// The elements of a scan are adjacent: a SIMD-group scans a stretch of one row, four runs of 32 at a time.
template <typename M>
kernel void scan_rows(device const memory_of<typename M::element>* x, device const typename M::acc* totals,
                      device memory_of<typename M::result>* out, constant Scan& s,
                      uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                      uint simd [[simdgroup_index_in_threadgroup]], uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    using A = typename M::acc;
    using R = storage<typename M::result>;
    constexpr uint RUNS = 4;
    const uint index = group * simds + simd, row = index / s.parts, part = index % s.parts;
    const uint count = part + 1 == s.parts ? s.rest : s.stretch;
    A carry = s.parts > 1 ? totals[index] : M::identity();
    x += s.offset + row * s.outer_pitch + part * ulong(s.stretch);
    out += row * s.out_pitch + part * ulong(s.stretch);
    if (s.initial) {
        if (part == 0 && lane == 0) out[0] = R::store(M::identity());
        out += 1;
    }
    x += lane;
    out += lane;
    const uint steps = count / (RUNS * LANES);
    for (uint step = 0; step < steps; ++step) {
        A run[RUNS];
        for (uint k = 0; k < RUNS; ++k) run[k] = scan_lanes<M>(A(fetch<M>(x, (step * RUNS + k) * LANES, 0)), lane);
        for (uint k = 0; k < RUNS; ++k) {
            out[(step * RUNS + k) * LANES] = R::store(M::combine(carry, run[k]));
            carry = M::combine(carry, from_last(run[k]));
        }
    }
    for (uint at = steps * RUNS * LANES; at < count; at += LANES) {
        const bool there = lane < count - at;
        const A run = scan_lanes<M>(there ? A(fetch<M>(x, at, 0)) : M::identity(), lane);
        if (there) out[at] = R::store(M::combine(carry, run));
        carry = M::combine(carry, from_last(run));
    }
}

// The same for devices with slow loads, if rows begin at multiples of four elements: each lane scans four elements by
// itself, so that the lanes combine once per 128 elements, not per 32. The last stretches are scanned first: they were
// read last for the totals, and may still be in cache.
template <typename M>
kernel void scan_rows_wide(device const memory_of<typename M::element>* x, device const typename M::acc* totals,
                           device memory_of<typename M::result>* out, constant Scan& s,
                           uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                           uint simd [[simdgroup_index_in_threadgroup]],
                           uint simds [[dispatch_simdgroups_per_threadgroup]], uint threads [[threads_per_grid]]) {
    using A = typename M::acc;
    using E = storage<typename M::element>;
    using R = storage<typename M::result>;
    using Given = vec<typename E::memory, 4>;
    using Made = vec<typename R::memory, 4>;
    constexpr uint RUNS = 4, RUN = 4 * LANES;
    const uint index = threads / LANES - 1 - (group * simds + simd), row = index / s.parts, part = index % s.parts;
    const uint count = part + 1 == s.parts ? s.rest : s.stretch;
    A carry = s.parts > 1 ? totals[index] : M::identity();
    x += s.offset + row * s.outer_pitch + part * ulong(s.stretch) + 4 * lane;
    out += row * s.out_pitch + part * ulong(s.stretch) + 4 * lane;
    uint at = 0;
    for (; at + RUNS * RUN <= count; at += RUNS * RUN) {
        A run[RUNS][4];
        for (uint k = 0; k < RUNS; ++k) {
            const Given four = *reinterpret_cast<device const Given*>(x + at + k * RUN);
            for (uint i = 0; i < 4; ++i) {
                const A values = A(M::load(E::load(four[i]), 0));
                run[k][i] = i ? M::combine(run[k][i - 1], values) : values;
            }
        }
        for (uint k = 0; k < RUNS; ++k) {
            const A through = scan_lanes<M>(run[k][3], lane), before = from_before(through, 1);
            const A start = lane ? M::combine(carry, before) : carry;
            Made four;
            for (uint i = 0; i < 4; ++i) four[i] = R::store(M::combine(start, run[k][i]));
            *reinterpret_cast<device Made*>(out + at + k * RUN) = four;
            carry = M::combine(carry, from_last(through));
        }
    }
    for (; at < count; at += RUN) {
        A run[4];
        for (uint i = 0; i < 4; ++i) {
            const A values = at + 4 * lane + i < count ? A(fetch<M>(x, at + i, 0)) : M::identity();
            run[i] = i ? M::combine(run[i - 1], values) : values;
        }
        const A through = scan_lanes<M>(run[3], lane), before = from_before(through, 1);
        const A start = lane ? M::combine(carry, before) : carry;
        for (uint i = 0; i < 4; ++i)
            if (at + 4 * lane + i < count) out[at + i] = R::store(M::combine(start, run[i]));
        carry = M::combine(carry, from_last(through));
    }
}

// Scans are adjacent: each lane goes down its columns of a stretch, and keeps their running values in threadgroup
// memory.
template <typename M>
kernel void scan_columns(device const memory_of<typename M::element>* x, device const typename M::acc* totals,
                         device memory_of<typename M::result>* out, constant Scan& s,
                         uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    using A = typename M::acc;
    using R = storage<typename M::result>;
    constexpr uint TILE = TILE_BYTES / sizeof(A);
    threadgroup A running[TILE];
    const uint first = group % s.tiles * TILE, part = group / s.tiles % s.parts, outer = group / s.tiles / s.parts;
    const uint count = part + 1 == s.parts ? s.rest : s.stretch;
    const uint width = first + TILE > s.width ? s.width - first : TILE, whole = width / LANES * LANES;
    x += s.offset + outer * s.outer_pitch + part * ulong(s.stretch) * s.pitch + first;
    out += outer * s.out_pitch + part * ulong(s.stretch) * s.width + first;
    totals += (outer * ulong(s.parts) + part) * s.width + first;
    for (uint at = 0; at < width; at += LANES) {
        const uint c = at + lane;
        if (lane < width - at) {
            running[c] = s.parts > 1 ? totals[c] : M::identity();
            if (s.initial && part == 0) out[c] = R::store(M::identity());
        }
    }
    if (s.initial) out += s.width;
    for (uint i = 0; i < count; ++i, x += s.pitch, out += s.width) {
        for (uint at = 0; at < whole; at += LANES) {
            const uint c = at + lane;
            const A value = M::combine(running[c], A(fetch<M>(x, c, 0)));
            running[c] = value;
            out[c] = R::store(value);
        }
        const uint c = whole + lane;
        if (lane < width - whole) {
            running[c] = M::combine(running[c], A(fetch<M>(x, c, 0)));
            out[c] = R::store(running[c]);
        }
    }
}

// The same for devices with slow loads: each thread goes down a stretch of one column, eight elements at a time.
template <typename M>
kernel void scan_down(device const memory_of<typename M::element>* x, device const typename M::acc* totals,
                      device memory_of<typename M::result>* out, constant Scan& s,
                      uint index [[thread_position_in_grid]]) {
    using A = typename M::acc;
    using R = storage<typename M::result>;
    const uint column = index % s.width, part = index / s.width % s.parts, outer = index / s.width / s.parts;
    const uint count = part + 1 == s.parts ? s.rest : s.stretch;
    A running = s.parts > 1 ? totals[index] : M::identity();
    x += s.offset + outer * s.outer_pitch + part * ulong(s.stretch) * s.pitch + column;
    out += outer * s.out_pitch + part * ulong(s.stretch) * s.width + column;
    if (s.initial) {
        if (part == 0) out[0] = R::store(M::identity());
        out += s.width;
    }
    uint i = 0;
    for (; i + IN_FLIGHT <= count; i += IN_FLIGHT) {
        A values[IN_FLIGHT];
        for (uint k = 0; k < IN_FLIGHT; ++k, x += s.pitch) values[k] = A(fetch<M>(x, 0, 0));
        for (uint k = 0; k < IN_FLIGHT; ++k, out += s.width) {
            running = M::combine(running, values[k]);
            *out = R::store(running);
        }
    }
    for (; i < count; ++i, x += s.pitch, out += s.width) {
        running = M::combine(running, A(fetch<M>(x, 0, 0)));
        *out = R::store(running);
    }
}
