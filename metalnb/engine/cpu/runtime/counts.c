// Kernels in vector registers with counters (mnb.profile): like lanes.c, on one core, except that each access of a
// SIMD-group is first reported here with its 32 addresses.
#include "lanes.c"

#define LANES 32
#define SIMDGROUPS 32
#define EXPORTED __attribute__((visibility("default")))

enum { READ = 1, WRITE = 2, ATOMIC = 4 };
#define SHARED (~0u)  // threadgroup memory, in place of a region's number
#define UNKNOWN (~0u - 1)

typedef struct { u64 start, end; u32 shift, unused; u8* touched; } memory;  // touched: a byte for each 2^shift bytes

// The cost of a SIMD-group's access. It depends on the mask, on each lane's distance from the first active lane, and on
// that lane's offset within a line of 128 bytes. (On a device every array begins at a line, wherever NumPy's begins.)
// So the latest pattern is kept for each of these offsets: one for all lanes, one for fewer.
typedef struct { u64 from, size; } stretch;  // relative to the first active lane's address, modulo 2^64
typedef struct {
    u64 apart[LANES];
    u64 hits;  // hits that are not yet added to the access's sums
    u32 mask, lanes, sectors, lines, different, passes, least, repeated, stretch_count;
    u32 in_rows;  // whether each eight lanes have a constant stride, which is the same whenever this access runs
    stretch stretches[LANES];  // contiguous memory, possibly of several lanes
} pattern;
#define PATTERNS 128  // bytes of a line
#define SETS 2        // a set for all lanes and a set for fewer, since these alternate at a grid's edges

typedef struct {
    u32 size, kind, region, mask;  // bytes of a lane's access; the sample's mask
    u64 runs, lanes, sectors, lines, used, passes, least, contended;
    u64 cost;            // the sample's sectors, or passes over the banks
    u64 sample[LANES];   // the lanes' offsets in their array
    u32 group, order;    // the sample's threadgroup, and how many began before it
    u32 repeated, unused; // the most lanes at one address, for an atomic operation
    u64 filled[SETS][PATTERNS / 64];  // a bit for each known pattern
} site;
typedef pattern patterns[SETS][PATTERNS];

typedef struct { u64 rounds, spent, waited, groups[SIMDGROUPS]; } barrier;

typedef struct {
    site* sites;
    patterns* known;  // the patterns of each site; an empty pattern has an empty mask
    barrier* barriers;
    memory* regions;
    u64 region_count, banks, shared_start, shared_end, site_count;
} counting;

static counting counted;
static u32 current_group, current_order;

#include "bank_conflicts.h"

// Written by the vector code.
HIDDEN u64 metalnb_addresses[LANES] __attribute__((aligned(64)));
HIDDEN u64 metalnb_work;  // instructions that SIMD-groups have executed
HIDDEN u64 metalnb_mark;  // the value of metalnb_work when the running SIMD-group began, or passed its last barrier

typedef u32 row __attribute__((vector_size(LANES * 4)));
#define EACH(F, J, K) F(0, J, K), F(1, J, K), F(2, J, K), F(3, J, K), F(4, J, K), F(5, J, K), F(6, J, K), F(7, J, K), \
    F(8, J, K), F(9, J, K), F(10, J, K), F(11, J, K), F(12, J, K), F(13, J, K), F(14, J, K), F(15, J, K), \
    F(16, J, K), F(17, J, K), F(18, J, K), F(19, J, K), F(20, J, K), F(21, J, K), F(22, J, K), F(23, J, K), \
    F(24, J, K), F(25, J, K), F(26, J, K), F(27, J, K), F(28, J, K), F(29, J, K), F(30, J, K), F(31, J, K)
#define PARTNER(i, J, K) (i) ^ (J)
#define SMALLER(i, J, K) ((((i) & (J)) == 0) == (((i) & (K)) == 0) ? (i) : LANES + (i))
#define STEP(J, K) { \
    const row other = __builtin_shufflevector(v, v, EACH(PARTNER, J, K)); \
    v = __builtin_shufflevector(__builtin_elementwise_min(v, other), __builtin_elementwise_max(v, other), \
                                EACH(SMALLER, J, K)); }

/// Sort by Batcher's bitonic network.
static row sorted(row v) {
    STEP(1, 2)
    STEP(2, 4) STEP(1, 4)
    STEP(4, 8) STEP(2, 8) STEP(1, 8)
    STEP(8, 16) STEP(4, 16) STEP(2, 16) STEP(1, 16)
    STEP(16, 32) STEP(8, 32) STEP(4, 32) STEP(2, 32) STEP(1, 32)
    return v;
}

/// Sort the first n addresses; the rest of the array is overwritten.
static void sort(u64* a, u32 n) {
    u64 low = ~0ull, high = 0;
    u32 falls = 0;
    for (u32 i = 0; i < n; ++i) low = a[i] < low ? a[i] : low, high = a[i] > high ? a[i] : high;
    for (u32 i = 1; i < n; ++i) falls |= a[i] < a[i - 1];
    if (!falls) return;
    if (high - low < ~0u) {
        row v = {0};
        for (u32 i = 0; i < LANES; ++i) v[i] = i < n ? (u32)(a[i] - low) : ~0u;
        v = sorted(v);
        for (u32 i = 0; i < LANES; ++i) a[i] = low + v[i];
        return;
    }
    for (u32 i = 1; i < n; ++i) {  // the addresses are far apart, which is rare
        const u64 inserted = a[i];
        u32 at = i;
        for (; at && a[at - 1] > inserted; --at) a[at] = a[at - 1];
        a[at] = inserted;
    }
}

/// The number of different addresses among sorted ones.
static u32 distinct(const u64* a, u32 n) {
    u32 changes = 0;
    for (u32 i = 1; i < n; ++i) changes += a[i] != a[i - 1];
    return n ? 1 + changes : 0;
}

/// The number of occurrences of the most frequent of sorted addresses.
static u32 most_at_one(const u64* a, u32 n) {
    u32 most = 0, repeats = 0;
    for (u32 i = 0; i < n; ++i) {
        repeats = i && a[i] == a[i - 1] ? repeats + 1 : 1;
        most = repeats > most ? repeats : most;
    }
    return most;
}

/// The number of memory segments of 2^shift bytes that accesses at sorted addresses touch.
static u32 pieces(const u64* a, u32 n, u32 size, u32 shift) {
    u64 next = 0;
    u32 count = 0;
    for (u32 i = 0; i < n; ++i) {
        const u64 first = a[i] >> shift, end = ((a[i] + size - 1) >> shift) + 1, from = first > next ? first : next;
        count += (u32)(end - (from < end ? from : end));
        next = end > next ? end : next;
    }
    return count;
}

/// Add the passes over the banks that an access needs, and those that it would need without conflicts.
static void over_banks(pattern* p, const u64* a, u32 mask, u32 size) {
    const u32 together = lanes_of_pass(size);
    for (u32 first = 0; first < LANES; first += together) {
        const u32 passes = bank_passes(a, mask, first, first + together, size);
        p->passes += passes;
        p->least += passes != 0;
    }
}

typedef u8 marks __attribute__((vector_size(LANES), aligned(1)));
#define FOR_LANES 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, \
    28, 29, 30, 31

/// Mark a range of a region, cut off at the region's end.
static inline void marked(const memory* m, u64 offset, u64 size, u8 mark) {
    const u64 bytes = m->end - m->start;
    if (offset >= bytes) return;
    if (size > bytes - offset) size = bytes - offset;
    u8* at = m->touched + (offset >> m->shift);
    const u64 count = ((offset + size - 1) >> m->shift) - (offset >> m->shift) + 1;
    if (count == 1) {
        *at |= mark;
        return;
    }
    for (u64 i = 0; i < count; i += LANES) {  // the marks are padded by a vector
        const marks here = {FOR_LANES};
        *(marks*)(at + i) |= mark & (marks)(here < (u8)(count - i < LANES ? count - i : LANES));
    }
}

static void touch(const memory* m, u64 first, u32 kind, const pattern* p) {
    const u8 mark = kind & READ ? 1 : kind & WRITE ? 2 : 3;
    for (u32 i = 0; i < p->stretch_count; ++i)
        marked(m, first + p->stretches[i].from - m->start, p->stretches[i].size, mark);
}

/// Merge the ranges that adjacent lanes access.
static void join_lanes(pattern* p, u32 mask, u32 size) {
    u32 n = 0;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const u64 at = p->apart[__builtin_ctz(rest)];
        stretch* last = p->stretches + n - 1;
        if (n && at - last->from <= last->size) {  // the range begins inside the last stretch, or at its end
            if (at - last->from + size > last->size) last->size = at - last->from + size;
        } else p->stretches[n++] = (stretch){at, size};
    }
    p->stretch_count = n;
}

static u32 region_of(u64 at, u32 before) {
    if (at - counted.shared_start < counted.shared_end - counted.shared_start) return SHARED;
    if (before < counted.region_count && at - counted.regions[before].start < counted.regions[before].end -
        counted.regions[before].start) return before;
    for (u32 i = 0; i < counted.region_count; ++i)
        if (at >= counted.regions[i].start && at < counted.regions[i].end) return i;
    return UNKNOWN;
}

/// Compute the cost of an access.
static void work_out(pattern* p, const site* s, const u64* a, u32 mask, u64 first, u64 base) {
    u64 packed[LANES];
    u32 n = 0, dense = mask == ~0u;
    for (u32 lane = 0; lane < LANES; ++lane) {
        p->apart[lane] = a[lane] - first;
        if (mask >> lane & 1) packed[n++] = a[lane] - base;
        dense &= a[lane] - a[0] == (u64)lane * s->size;
    }
    p->mask = mask, p->lanes = n, p->in_rows = 0;
    p->sectors = p->lines = p->passes = p->least = p->repeated = 0;
    if (!dense) sort(packed, n);
    p->different = distinct(packed, n);
    if (s->kind & ATOMIC) p->repeated = most_at_one(packed, n);
    if (s->region == SHARED) {
        over_banks(p, a, mask, s->size);
        return;
    }
    join_lanes(p, mask, s->size);
    p->sectors = pieces(packed, n, s->size, 5), p->lines = pieces(packed, n, s->size, 7);
}

static int is_known(const pattern* p, const u64* a, u64 first) {
    u64 differs = 0;
    if (p->mask == ~0u)
        for (u32 lane = 0; lane < LANES; ++lane) differs |= (a[lane] - first) ^ p->apart[lane];
    else
        for (u32 lane = 0; lane < LANES; ++lane)
            differs |= ((a[lane] - first) ^ p->apart[lane]) & -(u64)(p->mask >> lane & 1);
    return !differs;
}

/// Add a pattern's hits to the access's sums.
static void add_up(site* s, pattern* p) {
    const u64 hits = p->hits;
    p->hits = 0;
    s->runs += hits;
    s->lanes += hits * p->lanes;
    s->used += hits * p->different * s->size;
    s->sectors += hits * p->sectors, s->lines += hits * p->lines;
    s->passes += hits * p->passes, s->least += hits * p->least;
    if (s->kind & ATOMIC) s->contended += hits * (p->lanes - p->different);
}

/// The start of an access, and the known pattern for such a start.
typedef struct { u64 first, base; u32 region, mask, phase; pattern* known; } beginning;

static inline beginning begins(site* s, u64 first, u32 mask) {
    const u32 region = region_of(first, s->region);
    const u64 base = region == SHARED ? counted.shared_start
        : region < counted.region_count ? counted.regions[region].start : 0;
    const u32 phase = (u32)(first - base) & (PATTERNS - 1);
    return (beginning){first, base, region, mask, phase, &counted.known[s - counted.sites][mask != ~0u][phase]};
}

/// Replace the known pattern by this access's, and keep the access as the sample if none has cost more.
static __attribute__((noinline)) void replace(site* s, const beginning* b, const u64* a) {
    pattern* p = b->known;
    add_up(s, p);
    s->region = b->region;
    s->filled[b->mask != ~0u][b->phase / 64] |= 1ull << b->phase % 64;
    work_out(p, s, a, b->mask, b->first, b->base);
    if ((s->kind & ATOMIC) && p->repeated > s->repeated) s->repeated = p->repeated;
    const u64 cost = (b->region == SHARED ? p->passes : p->sectors) + p->repeated;
    if (cost <= s->cost) return;
    s->cost = cost, s->mask = b->mask, s->group = current_group, s->order = current_order;
    for (u32 lane = 0; lane < LANES; ++lane) s->sample[lane] = a[lane] - b->base;
}

static inline void hit(const site* s, const beginning* b) {
    ++b->known->hits;
    if (b->region < counted.region_count) touch(counted.regions + b->region, b->first, s->kind, b->known);
}

/// An access by a mask's lanes to the addresses in metalnb_addresses.
HIDDEN void metalnb_accessed(u32 number, u32 mask) {
    if (!mask) return;
    site* s = counted.sites + number;
    const u64* a = metalnb_addresses;
    const beginning b = begins(s, a[__builtin_ctz(mask)], mask);
    if (b.region != s->region || b.known->mask != mask || !is_known(b.known, a, b.first)) replace(s, &b, a);
    hit(s, &b);
}

/// An access with a stride that is always the same: only its start and its mask need comparing.
HIDDEN void metalnb_accessed_strided(u32 number, u32 mask, u64 lane_0, u64 stride) {
    if (!mask) return;
    site* s = counted.sites + number;
    const beginning b = begins(s, lane_0 + __builtin_ctz(mask) * stride, mask);
    if (b.region != s->region || b.known->mask != mask) {
        for (u32 lane = 0; lane < LANES; ++lane) metalnb_addresses[lane] = lane_0 + lane * stride;
        replace(s, &b, metalnb_addresses);
    }
    hit(s, &b);
}

/// An access by all lanes whose stride within each eight lanes is always the same: only the first of each eight needs
/// comparing.
HIDDEN void metalnb_accessed_rows(u32 number, u64 stride, u64 lane_0, u64 lane_8, u64 lane_16, u64 lane_24) {
    site* s = counted.sites + number;
    const beginning b = begins(s, lane_0, ~0u);
    const u64* apart = b.known->apart;
    const u64 differs = (lane_8 - lane_0 - apart[8]) | (lane_16 - lane_0 - apart[16]) | (lane_24 - lane_0 - apart[24]);
    if (b.region != s->region || b.known->mask != ~0u || !b.known->in_rows || differs) {
        const u64 first[] = {lane_0, lane_8, lane_16, lane_24};
        for (u32 lane = 0; lane < LANES; ++lane) metalnb_addresses[lane] = first[lane / 8] + lane % 8 * stride;
        replace(s, &b, metalnb_addresses);
        b.known->in_rows = 1;
    }
    hit(s, &b);
}

// ---- Waiting times: at each barrier, the work of each SIMD-group since the previous one.

static u32 open_site = ~0u, open_last, open_count;
static u64 open_sum, open_most;

static void close_round(void) {
    if (open_count) {
        barrier* b = counted.barriers + open_site;
        ++b->rounds;
        b->spent += open_most * open_count;
        b->waited += open_most * open_count - open_sum;
    }
    open_count = 0, open_sum = 0, open_most = 0;
}

/// A SIMD-group reaches a barrier.
HIDDEN void metalnb_waits(u32 number, u32 index) {
    const u32 group = index / LANES;
    const u64 work = metalnb_work - metalnb_mark;
    if (open_count && (open_site != number || group <= open_last)) close_round();
    open_site = number, open_last = group;
    ++open_count;
    open_sum += work;
    if (work > open_most) open_most = work;
    counted.barriers[number].groups[group % SIMDGROUPS] += work;
    metalnb_mark = metalnb_work;
}

EXPORTED void metalnb_count(const counting* c) {
    counted = *c;
    open_count = 0;
    metalnb_work = metalnb_mark = 0;
}

/// Add the remaining hits, so that all accesses' sums are complete, and forget the patterns.
EXPORTED void metalnb_add_up(void) {
    for (u64 i = 0; i < counted.site_count; ++i)
        for (u32 set = 0; set < SETS; ++set)
            for (u32 word = 0; word < PATTERNS / 64; ++word)
                for (u64 rest = counted.sites[i].filled[set][word]; rest; rest &= rest - 1) {
                    pattern* p = &counted.known[i][set][word * 64 + __builtin_ctzll(rest)];
                    add_up(counted.sites + i, p);
                    p->mask = 0;
                }
}

/// Run threadgroups in rows of `row` adjacent ones, which suits caches, with rows `step` apart and wrapping around, so
/// that those of any range are spread evenly. Threadgroups that do not fill a row come last.
EXPORTED void metalnb_spread(const dispatch* d, void* scratch, u64 from, u64 to, u64 step, u64 row) {
    const u64 all = (u64)d->groups.x * d->groups.y * d->groups.z, rows = all / row;
    for (u64 i = from; i < to; ++i) {
        current_order = (u32)i;
        current_group = (u32)(i < rows * row ? i / row * step % rows * row + i % row : i);
        metalnb_groups(d, scratch, current_group, 1);
        close_round();
    }
}
