// Non-temporal stores, for CPUs: a memory line that is written whole need not be read first, which saves a fourth of
// the traffic of a long sum of two arrays. What a core's cache may keep for the next kernel is not worth that: the host
// decides.
#pragma once
#include <metalnb/elementwise.h>

struct Streamed : Whole {
    template <typename M> static void put(device M* place, M value) { __builtin_nontemporal_store(value, place); }
};
