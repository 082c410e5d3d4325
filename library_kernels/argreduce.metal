// Where the largest (or smallest) element of a reduction is: the first one, when several are equal.
// Idea: each lane keeps the best element it has met and where that was. Lanes, then stretches, are compared by element
// and, where those are equal, by place: so it does not matter in which order they meet. A NaN is better than any number.
// Source: as reduce.metal; the pair of value and index is the usual monoid of "argmax".
#pragma once
#include <metalnb/reduce.metal>

// What a lane, a SIMD-group or a stretch has found. Places are counted from the start of the reduction.
template <typename V> struct Found {
    V value;
    ulong place;
};

struct Largest {
    template <typename V> static bool better(V a, V b) { return a > b || (unordered(a) && !unordered(b)); }
};
struct Smallest {
    template <typename V> static bool better(V a, V b) { return a < b || (unordered(a) && !unordered(b)); }
};

// The better of two; the earlier of two equal ones.
template <typename Order, typename V> inline Found<V> first_best(Found<V> a, Found<V> b) {
    const bool take = Order::better(b.value, a.value) || (!Order::better(a.value, b.value) && b.place < a.place);
    return {take ? b.value : a.value, take ? b.place : a.place};
}

template <typename Order, typename V> inline Found<V> best_of_lanes(Found<V> found) {
    for (ushort mask = LANES / 2; mask > 0; mask /= 2)
        found = first_best<Order>(found, Found<V>{from_lane(found.value, mask), from_lane(found.place, mask)});
    return found;
}

// Rows: a SIMD-group takes a stretch. Four searches side by side in each lane, so that none waits for the one before it;
// what they count is steps, the same for all lanes.
template <typename Order, typename T>
kernel void argreduce_rows(device const memory_of<T>* x, device memory_of<value_of<T>>* values, device ulong* places,
                           constant Reduction& r, uint group [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                           uint simds [[dispatch_simdgroups_per_threadgroup]]) {
    using V = value_of<T>;
    constexpr uint SEARCHES = 4;
    const uint at = group * simds + simd, row = at / r.parts, part = at % r.parts;
    const uint count = part + 1 == r.parts ? r.rest : r.stretch;
    const ulong start = part * ulong(r.stretch);
    x += r.offset + row * r.pitch + start;

    V best[SEARCHES];
    uint when[SEARCHES];
    const uint steps = count / (SEARCHES * LANES);
    for (uint k = 0; k < SEARCHES; ++k) {  // of a short stretch, each lane has its first
        best[k] = storage<T>::load(x[steps > 0 ? k * LANES + lane : 0]);
        when[k] = 0;
    }
    x += lane;
    for (uint step = 1; step < steps; ++step) {
        for (uint k = 0; k < SEARCHES; ++k) {
            const V value = storage<T>::load(x[(step * SEARCHES + k) * LANES]);
            const bool take = Order::better(value, best[k]);
            best[k] = take ? value : best[k];
            when[k] = take ? step : when[k];
        }
    }
    Found<V> found = {best[0], 0};
    if (steps > 0) {
        found.place = start + when[0] * SEARCHES * LANES + lane;
        for (uint k = 1; k < SEARCHES; ++k)
            found = first_best<Order>(found, Found<V>{best[k], start + (when[k] * SEARCHES + k) * LANES + lane});
    } else {
        found.place = start;
    }
    for (uint i = steps * SEARCHES * LANES; i < count; i += LANES)
        if (lane < count - i)
            found = first_best<Order>(found, Found<V>{storage<T>::load(x[i]), start + i + lane});
    found = best_of_lanes<Order>(found);
    if (lane == 0) {
        values[at] = found.value;
        places[at] = found.place;
    }
}

// Columns: each lane goes down one column of a stretch.
template <typename Order, typename T>
kernel void argreduce_columns(device const memory_of<T>* x, device memory_of<value_of<T>>* values, device ulong* places,
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
            places[out + c] = start + when[c];
        }
    }
}

// What the stretches of one reduction have found, `pitch` apart: a thread goes through them in order.
template <typename Order, typename V>
kernel void argreduce_merge(device const memory_of<V>* values, device const ulong* places, device long* out,
                            constant Reduction& r, uint place [[thread_position_in_grid]]) {
    const ulong from = place / r.width * r.outer_pitch + place % r.width;
    Found<V> found = {values[from], places[from]};
    for (uint i = 1; i < r.count; ++i) {
        const ulong at = from + i * r.pitch;
        found = first_best<Order>(found, Found<V>{values[at], places[at]});
    }
    out[place] = long(found.place);
}

// Short reductions: each thread does one by itself, wherever its elements lie.
template <typename Order, typename T>
kernel void argreduce_each(device const memory_of<T>* x, device long* out, constant Reduction& r,
                           uint place [[thread_position_in_grid]]) {
    x += r.offset + place / r.width * r.outer_pitch + place % r.width;
    value_of<T> best = storage<T>::load(x[0]);
    uint when = 0;
    for (uint i = 1; i < r.count; ++i) {
        const value_of<T> value = storage<T>::load(x[i * r.pitch]);
        const bool take = Order::better(value, best);
        best = take ? value : best;
        when = take ? i : when;
    }
    out[place] = when;
}
