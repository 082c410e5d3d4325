// The position of a reduction's largest (or smallest) element, the first if several are equal.
// Idea: a reduction finds the value, and only the first stretch that contains the value is searched for its position.
// In columns, each lane keeps the best element so far and its position. Stretches are compared by element and, if
// elements are equal, by position, so their order of combination does not matter. A NaN is better than any number.
// Source: as reduce.metal; the pair of value and index is the usual monoid of "argmax".
#pragma once
#include <metalnb/reduce.metal>

struct Largest {
    template <typename T> using monoid = Maximum<T, T, value_of<T>, value_of<T>>;
    template <typename V> static bool better(V a, V b) { return a > b || (unordered(a, a) && !unordered(b, b)); }
};
struct Smallest {
    template <typename T> using monoid = Minimum<T, T, value_of<T>, value_of<T>>;
    template <typename V> static bool better(V a, V b) { return a < b || (unordered(a, a) && !unordered(b, b)); }
};

// Return the best of `count` consecutive elements, in every lane.
template <typename Order, typename T>
inline value_of<T> best_of(device const memory_of<T>* x, uint count, uint lane) {
    using M = typename Order::template monoid<T>;
    return across_lanes<M>(along_row<M>(x, count, lane, 0));
}

// Return the lowest of the lanes' numbers, in every lane.
inline uint lowest(uint x) {
    for (ushort mask = LANES / 2; mask > 0; mask /= 2) x = min(x, simd_shuffle_xor(x, mask));
    return x;
}

// Return the first position of `best` among `count` elements; a SIMD-group searches for it.
template <typename Order, typename T, typename V>
inline uint search(device const memory_of<T>* x, uint count, V best, uint lane) {
    const uint steps = count / STEP;
    x += lane;
    for (uint step = 0; step < steps; ++step) {  // go backwards, so that the first position is found last
        uint first = STEP;
        for (uint k = IN_FLIGHT; k-- > 0;)
            first = Order::better(best, storage<T>::load(x[step * STEP + k * LANES])) ? first : k * LANES + lane;
        first = lowest(first);
        if (first < STEP) return step * STEP + first;
    }
    uint first = count;
    for (uint i = steps * STEP; i < count; i += LANES)
        if (lane < count - i && first == count && !Order::better(best, storage<T>::load(x[i]))) first = i + lane;
    return lowest(first);
}

// Return the first position that any SIMD-group of a threadgroup has found in its part. A SIMD-group without a match
// reports the length of its part.
inline uint first_in_group(uint candidate, Part part, threadgroup uint* positions, uint lane, uint simd, uint simds) {
    if (lane == 0) positions[simd] = candidate < part.count ? part.first + candidate : ~0u;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint first = lowest(lane < simds ? positions[lane] : ~0u);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return first;
}

// Rows: a SIMD-group finds the best element of a stretch. If the stretch is the entire row, it also finds the position.
template <typename Order, typename T>
kernel void argreduce_rows(device const memory_of<T>* x, device value_of<T>* values, device long* out,
                           constant Reduction& r, uint group [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                           uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint at = group * simds + simd, row = at / r.parts, part = at % r.parts;
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    x += r.offset + row * r.pitch + part * ulong(r.stretch);
    const auto best = best_of<Order, T>(x, count, lane);
    if (r.parts > 1) {
        if (lane == 0) values[at] = best;
    } else {
        const uint position = search<Order, T>(x, count, best, lane);
        if (lane == 0) out[row] = position;
    }
}

// Rows of several stretches: a SIMD-group finds the first stretch that has the best element, and searches that stretch.
template <typename Order, typename T>
kernel void argreduce_pick(device const memory_of<T>* x, device const value_of<T>* values, device long* out,
                           constant Reduction& r, uint row [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]]) {
    using V = value_of<T>;
    values += row * r.parts;
    const auto best = best_of<Order, V>(values, r.parts, lane);
    const uint part = search<Order, V>(values, r.parts, best, lane);
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    const uint position = search<Order, T>(x + r.offset + row * r.pitch + part * ulong(r.stretch), count, best, lane);
    if (lane == 0) out[row] = part * long(r.stretch) + position;
}

// The same for a threadgroup: its SIMD-groups share the stretches, and then the elements of the best stretch.
template <typename Order, typename T>
kernel void argreduce_pick_shared(device const memory_of<T>* x, device const value_of<T>* values, device long* out,
                                  constant Reduction& r, uint row [[threadgroup_position_in_grid]],
                                  uint lane [[thread_index_in_simdgroup]],
                                  uint simd [[simdgroup_index_in_threadgroup]],
                                  uint simds [[simdgroups_per_threadgroup]]) {
    using V = value_of<T>;
    using M = typename Order::template monoid<V>;
    threadgroup V bests[LANES];
    threadgroup uint positions[LANES];
    values += row * r.parts;
    const Part stretches(r.parts, simd, simds);
    const auto best = across_group<M>(best_of<Order, V>(values + stretches.first, stretches.count, lane), bests, lane, simd, simds);
    const uint part = first_in_group(
        search<Order, V>(values + stretches.first, stretches.count, best, lane), stretches, positions, lane, simd, simds);
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    const Part elements(count, simd, simds);
    x += r.offset + row * r.pitch + part * ulong(r.stretch) + elements.first;
    const uint position = first_in_group(search<Order, T>(x, elements.count, best, lane), elements, positions, lane, simd, simds);
    if (lane == 0 && simd == 0) out[row] = part * long(r.stretch) + position;
}

// Columns: each lane goes down one column of a stretch.
template <typename Order, typename T>
kernel void argreduce_columns(device const memory_of<T>* x, device memory_of<value_of<T>>* values, device ulong* positions,
                              constant Reduction& r, uint group [[threadgroup_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]]) {
    using V = value_of<T>;
    constexpr uint TILE = TILE_BYTES / (sizeof(V) + sizeof(uint));
    threadgroup V best[TILE];
    threadgroup uint when[TILE];
    const uint first = group % r.tiles * TILE, part = group / r.tiles % r.parts, outer = group / r.tiles / r.parts;
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    const uint width = first + TILE > r.width ? r.width - first : TILE, whole = width / LANES * LANES;
    const ulong start = part * ulong(r.stretch);
    x += r.offset + outer * r.outer_pitch + start * r.pitch + first;
    for (uint at = 0; at < width; at += LANES) {
        const uint c = at + lane;
        if (lane < width - at) best[c] = storage<T>::load(x[c]);
        when[c] = 0;
    }
    for (uint i = 1; i < count; ++i) {
        x += r.pitch;
        for (uint at = 0; at < whole; at += LANES) {
            const uint c = at + lane;
            const V value = storage<T>::load(x[c]);
            const bool take = Order::better(value, best[c]);
            best[c] = take ? value : best[c];
            when[c] = take ? i : when[c];
        }
        const uint c = whole + lane;
        if (lane < width - whole) {
            const V value = storage<T>::load(x[c]);
            if (Order::better(value, best[c])) {
                best[c] = value;
                when[c] = i;
            }
        }
    }
    const ulong out = (outer * r.parts + part) * ulong(r.width) + first;
    for (uint at = 0; at < width; at += LANES) {
        const uint c = at + lane;
        if (lane < width - at) {
            values[out + c] = best[c];
            positions[out + c] = start + when[c];
        }
    }
}

// Columns, for devices with slow loads: each thread goes down a stretch of one column, eight elements at a time.
template <typename Order, typename T>
kernel void argreduce_down(device const memory_of<T>* x, device memory_of<value_of<T>>* values, device ulong* positions,
                           constant Reduction& r, uint position [[thread_position_in_grid]]) {
    using V = value_of<T>;
    const uint column = position % r.width, part = position / r.width % r.parts, outer = position / r.width / r.parts;
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    const ulong start = part * ulong(r.stretch);
    x += r.offset + outer * r.outer_pitch + start * r.pitch + column;
    V best = storage<T>::load(x[0]);
    uint when = 0, i = 0;
    for (; i + IN_FLIGHT <= count; i += IN_FLIGHT) {
        V loaded[IN_FLIGHT];
        for (uint k = 0; k < IN_FLIGHT; ++k, x += r.pitch) loaded[k] = storage<T>::load(*x);
        for (uint k = 0; k < IN_FLIGHT; ++k) {
            const bool take = Order::better(loaded[k], best);
            best = take ? loaded[k] : best;
            when = take ? i + k : when;
        }
    }
    for (; i < count; ++i, x += r.pitch) {
        const V value = storage<T>::load(*x);
        const bool take = Order::better(value, best);
        best = take ? value : best;
        when = take ? i : when;
    }
    values[position] = best;
    positions[position] = start + when;
}

// Combine the results of the stretches of columns: a thread goes through the results of one column in order.
template <typename Order, typename V>
kernel void argreduce_merge(device const V* values, device const ulong* positions, device long* out,
                            constant Reduction& r, uint position [[thread_position_in_grid]]) {
    ulong at = position / r.width * r.outer_pitch + position % r.width, best = at;
    for (uint i = 1; i < r.count; ++i) {
        at += r.pitch;
        best = Order::better(values[at], values[best]) ? at : best;
    }
    out[position] = long(positions[best]);
}

// The same for many stretches: a SIMD-group goes through the results of one column, interleaved over its lanes.
template <typename Order, typename V>
kernel void argreduce_merge_lanes(device const V* values, device const ulong* positions, device long* out,
                                  constant Reduction& r, uint group [[threadgroup_position_in_grid]],
                                  uint lane [[thread_index_in_simdgroup]],
                                  uint simd [[simdgroup_index_in_threadgroup]],
                                  uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    const uint position = group * simds + simd;
    const ulong first = position / r.width * r.outer_pitch + position % r.width;
    V best = values[first];
    ulong where = positions[first];
    for (uint i = lane; i < r.count; i += LANES) {
        const ulong at = first + i * r.pitch;
        const V value = values[at];
        const bool take = Order::better(value, best);
        best = take ? value : best;
        where = take ? positions[at] : where;
    }
    for (ushort mask = LANES / 2; mask > 0; mask /= 2) {
        const V other = from_lane(best, mask);
        const ulong its = from_lane(where, mask);
        const bool take = Order::better(other, best) || (!Order::better(best, other) && its < where);
        best = take ? other : best;
        where = take ? its : where;
    }
    if (lane == 0) out[position] = long(where);
}

// Short reductions, of elements with any strides: each is done by one thread.
template <typename Order, typename T>
kernel void argreduce_each(device const memory_of<T>* x, device long* out, constant Reduction& r,
                           uint position [[thread_position_in_grid]]) {
    x += r.offset + position / r.width * r.outer_pitch + position % r.width;
    value_of<T> best = storage<T>::load(x[0]);
    uint when = 0;
    for (uint i = 1; i < r.count; ++i) {
        const value_of<T> value = storage<T>::load(x[i * r.pitch]);
        const bool take = Order::better(value, best);
        best = take ? value : best;
        when = take ? i : when;
    }
    out[position] = when;
}
