// Non-temporal stores, for CPUs. A cache line that is overwritten completely need not be read first, which saves a
// quarter of the traffic of a long sum of two arrays. The host decides when this saves more than keeping the result in
// a core's cache for the next kernel.
#pragma once
#include <metalnb/elementwise.h>

struct Streamed : Whole {
    template <typename M> static void put(device M* place, M value) { __builtin_nontemporal_store(value, place); }
};
