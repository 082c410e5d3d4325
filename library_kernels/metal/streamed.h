// Results that are written past the caches, for CPUs: a line of memory that is written whole need not be read first, which
// is a fourth of what a long sum of two arrays moves. What a core's cache may keep for the next kernel is not worth that:
// the host decides.
#pragma once
#include <metalnb/elementwise.h>

struct Streamed : Whole {
    template <typename M> static void put(device M* place, M value) { __builtin_nontemporal_store(value, place); }
};
