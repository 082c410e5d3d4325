// The parameters of a selection, which radix_select.metal and few_select.metal share.
#pragma once
#include <metalnb/lanes.h>
#include <metalnb/order.h>

struct Selection {
    ulong start;          // the offset of the keys in their memory
    uint n;               // keys of a row
    uint k;               // keys to select from each part
    uint parts;           // parts of a row, whose lengths differ by at most 1
    uint are_candidates;  // whether the keys are candidates, with their positions in the row
};
