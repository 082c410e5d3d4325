// Records which thread accessed which element: part of validation.c.
//
// Two accesses race if at least one is a write, they aren't both atomic, and nothing orders them. Two threads are
// ordered by a barrier of their threadgroup or SIMD-group, or by fences with an atomic between them (fences.h). Two
// threadgroups are ordered only by such fences.
//
// Most accesses need no record. Each load of a kernel has a site. Code from access_sites.py compares it with the
// last load at that site: if both read the same memory, and either no thread may write it or two threads have already
// read this element at this moment, there is nothing to report and nothing to record.
#pragma once

typedef struct {  // laid out as the kernel's code expects
    u64 start, limit;  // start address, and length in access-sized elements; 0 if closed
    const u8* units;   // marks, or a placeholder where none are made
    u64 mask;          // the mask for an element's number
    u64 count;         // the loads that needed no call
    u64 region;        // the region's number, counted from 1
} site;
extern site metalnb_sites[] HIDDEN;
extern const u64 metalnb_site_count HIDDEN;

static void count_sites(void) {
    for (u64 i = 0; i < metalnb_site_count; ++i) {
        site* s = &metalnb_sites[i];
        if (s->limit && s->region) state->regions[s->region - 1].reads += s->count;
        s->count = 0;
    }
}
static void begin_sites(void) {
    for (u64 i = 0; i < metalnb_site_count; ++i) metalnb_sites[i] = (site){0};
}
static void close_sites(void) {
    count_sites();
    begin_sites();
}
/// Enable a site's inline check for this memory.
static void open_site(site* s, u64 start, u64 size, u32 bytes, u64 region_number, const unit* units) {
    if (start & (bytes - 1)) return;
    if (s->limit && s->region) state->regions[s->region - 1].reads += s->count;
    const u8* checked = (const u8*)(units ? units : &placeholder_unit);
    *s = (site){start, size / bytes, checked, units ? ~0ull : 0, 0, region_number};
}

// ---- Races, with both values.

static finding* last_race;  // a writer's last finding: its value is in memory by the next access
static u64 last_race_address;
static inline void finish_race(void) {
    if (last_race) last_race->after = *(const volatile u64*)last_race_address, last_race = 0;
}

/// Whether a barrier of this threadgroup, even one with mem_none, follows an access: a read has its value by then.
static inline int precedes_barrier(mark m) { return moment_of(m) >= group_start && moment_of(m) < execution_start; }
enum { UNORDERED, BEFORE, BEFORE_FOR_ME };
static int order_of(mark m, u32 thread, u32 shared) {
    if (moment_of(m) >= group_start) {
        if (moment_of(m) < interval_start) return BEFORE;
        const u32 other = thread_of(m);
        const u64 start = simdgroup_start[thread];
        const int same_simdgroup = other / LANES == thread / LANES;
        if (same_simdgroup && moment_of(m) < start && simdgroup_start[other] >= start) return BEFORE_FOR_ME;
    }
    return has_fences && is_visible(m, thread, shared) ? BEFORE_FOR_ME : UNORDERED;
}
static inline int is_own(mark m, u32 thread) { return thread_of(m) == thread && moment_of(m) >= group_start; }

static void report_race(
    u32 written, mark other, u32 other_written, u32 position, const watched* r, u64 offset, u32 size
) {
    finding* f = record_finding(RACE, position, position_of(other), (u32)(r - state->regions));
    if (!f) return;
    f->written = written;
    f->offset = (long long)offset;
    f->size = size;
    f->other_group = group_at(moment_of(other));
    f->other_written = other_written;
    f->other = thread_of(other);
    f->value = (float)precedes_barrier(other);
    const u64 at = (r->start + offset) & ~7ull;
    f->before = f->after = *(const volatile u64*)at;
    if (written) last_race = f, last_race_address = at;
}

static void report_unwritten(const watched* r, u64 i, u32 position, u32 size) {
    finding* f = record_finding(UNWRITTEN, position, 0, (u32)(r - state->regions));
    if (f) f->offset = (long long)(i << r->shift), f->size = size;
}

static void read_unit(const watched* r, u64 i, mark mine, u32 thread, u32 size) {
    unit* u = &r->units[i];
    const mark writer = u->writer;
    const int is_foreign = writer && !is_own(writer, thread) && !(is_atomic(writer) && is_atomic(mine));
    int order = BEFORE;
    if (is_foreign) order = order_of(writer, thread, r->shared);
    if (!order) report_race(0, writer, 1, position_of(mine), r, i << r->shift, size);
    if (!writer && r->shared) {
        report_unwritten(r, i, position_of(mine), size);
        order = UNORDERED;
    }
    const mark reader = u->reader;
    if (!reader || precedes_barrier(reader) || is_own(reader, thread)) u->reader = mine;
    else if (order == BEFORE) u->later = mine;  // with two readers marked, further reads at this moment need no mark
}

static void write_unit(const watched* r, u64 i, mark mine, u32 thread, u32 size) {
    unit* u = &r->units[i];
    const mark writer = u->writer, readers[2] = {u->later, u->reader};
    const u32 atomic = is_atomic(mine);
    int is_reported = 0;
    if (writer && !is_own(writer, thread) && !(atomic && is_atomic(writer)) && !order_of(writer, thread, r->shared)) {
        report_race(1, writer, 1, position_of(mine), r, i << r->shift, size);
        is_reported = 1;
    }
    for (int k = 0; k < 2 && !is_reported; ++k) {
        const mark m = readers[k];
        if (!m || is_own(m, thread) || (atomic && is_atomic(m)) || precedes_barrier(m)) continue;
        if (order_of(m, thread, r->shared)) continue;
        report_race(1, m, 0, position_of(mine), r, i << r->shift, size);
        is_reported = 1;
    }
    // clang may have removed a thread's reads between two of its own writes.
    if (writer && !r->shared && !is_reported && !atomic && !u->reader && !is_atomic(writer) && !is_own(writer, thread)) {
        r->overwritten[i] = 1;
        finding* f = record_finding(TWICE, position_of(mine), position_of(writer), (u32)(r - state->regions));
        if (f) {
            f->written = f->other_written = 1, f->size = size, f->offset = (long long)(i << r->shift);
            f->other = thread_of(writer), f->other_group = group_at(moment_of(writer));
        }
    }
    *u = (unit){mine, 0, 0};
}

// ---- An access.

static inline mark make_mark(u32 thread, u32 atomic, address from) {
    const u32 position = position_at(from);
    return metalnb_now << 36 | (mark)thread << 26 | (mark)atomic << 25 | (position >> 25 ? 0 : position);
}
/// The first moment whose marks are valid here; earlier marks belong to memory that had this address before.
static inline mark oldest_mark(const watched* r) { return (r->shared ? group_start : run_start + 1) << 36; }
static inline int precedes_interval(mark m) { return m >= group_start << 36 && m < interval_start << 36; }

static inline int try_read(const watched* r, unit* u, mark mine, u32 thread) {
    const mark oldest = oldest_mark(r), reader = u->reader;
    mark writer = u->writer;
    if (writer < oldest) writer = 0;
    if (writer ? !precedes_interval(writer) && !is_own(writer, thread) : r->shared) return 0;
    if (reader < oldest) *u = (unit){writer, mine, 0};
    else if (precedes_interval(reader) || is_own(reader, thread)) u->reader = mine;
    else u->later = mine;
    return 1;
}
static inline int try_write(const watched* r, unit* u, mark mine, u32 thread) {
    const mark free = r->shared ? interval_start << 36 : oldest_mark(r);
    if (u->writer >= free && !is_own(u->writer, thread)) return 0;
    if (u->reader >= free && !is_own(u->reader, thread)) return 0;
    if (u->reader >= free && u->later >= free) return 0;
    *u = (unit){mine, 0, 0};
    return 1;
}
/// The fast path, for a site whose previous access found the region; return false if the slow path is needed.
static inline __attribute__((always_inline)) int try_fast_path(u64 at, u32 size, u32 written, address from, site* s) {
    if (!s->region || last_race || state->stopped > 1) return 0;
    watched* r = &state->regions[s->region - 1];
    const u64 offset = at - r->start;
    if (offset + size > r->size || offset > r->size || at & (size - 1) || size != 1u << r->shift || r->constant) return 0;
    if (!r->shared && state->events_found < state->max_events) return 0;
    const u32 thread = index_in_group(self());
    const mark mine = make_mark(thread, 0, from);
    unit* u = &r->units[offset / size];
    if (!(written ? try_write : try_read)(r, u, mine, thread)) return 0;
    ++*(written ? &r->writes : &r->reads);
    if (!written && s->start != r->start) open_site(s, r->start, r->size, size, s->region, r->units);
    return 1;
}

static void report_stray(u64 at, u32 size, u32 written, u32 position, worker* w) {
    u32 nearest = ~0u;
    u64 least_distance = ~0ull;
    for (u32 number = 0; number < state->count; ++number) {
        const watched* r = &state->regions[number];
        const u64 distance = at < r->start ? r->start - at : at - r->start < r->size ? 0 : at - r->start - r->size;
        const int in_reach = at < r->start ? distance <= r->before : distance <= r->after;
        if (in_reach && distance < least_distance) nearest = number, least_distance = distance;
    }
    watched* r = nearest == ~0u ? 0 : &state->regions[nearest];
    const long long offset = (long long)(at - (r ? r->start : 0));
    if (r) ++r->strays;
    if (r && state->events_found < state->max_events && !r->shared) {
        const u32 access = nearest << 2 | 2 | written;
        state->events[state->events_found++] =
            (event){(unsigned short)index_in_group(w), (unsigned short)access, group_number, offset};
    }
    finding* f = record_finding(r ? BEYOND : WILD, position, 0, nearest);
    if (f) f->written = written, f->size = size, f->offset = offset;
    if (!r) {
        ++ended_threads;
        end_thread(w);
    }
}

/// The read half of an atomic operation; threadgroup memory must already have been written.
static void check_atomic_read(u64 at, u32 size, u32 position) {
    for (u32 number = 0; number < state->count; ++number) {
        const watched* r = &state->regions[number];
        const u64 offset = at - r->start, i = offset >> r->shift;
        if (offset + size > r->size || offset > r->size) continue;
        if (r->shared && r->units[i].writer < oldest_mark(r)) report_unwritten(r, i, position, size);
        return;
    }
}

/// An access of `size` bytes. Marks number a thread within its threadgroup; findings, within the grid.
/// `natural`: the address should be a multiple of the size. `s`: the site of a plain load or store in the kernel.
static __attribute__((noinline)) void record_access(
    u64 at, u32 size, u32 written, u32 atomic, u32 natural, address from, site* s) {
    worker* w = self();
    finish_race();
    const u64 stack = (u64)w;
    if (at - stack < REGION && at - w->arena >= 64 << 20) {  // the thread's own stack
        if (s && !written && at < w->arena) open_site(s, stack, ARENA, size, 0, 0);
        return;
    }
    if (state->stopped > 1) end_thread(w);
    const u32 position = position_at(from);
    static u8 likely_regions[256];  // the likely region of an address, by some of its bits
    u8* likely = &likely_regions[at >> 10 & 255];
    u32 number = s && s->region ? (u32)s->region - 1 : *likely;
    for (u32 tries = 0; tries < state->count; ++tries, ++number) {
        if (number >= state->count) number = 0;
        watched* r = &state->regions[number];
        const u64 offset = at - r->start;
        if (offset + size > r->size || offset > r->size) continue;
        *likely = (u8)number;
        ++*(written ? &r->writes : &r->reads);
        if (atomic) ++r->atomics;
        const u32 thread = index_in_group(w);
        const int is_logged = state->events_found < state->max_events && !r->shared;
        if (is_logged) {
            const u32 access = number << 2 | written;
            state->events[state->events_found++] =
                (event){(unsigned short)thread, (unsigned short)access, group_number, (long long)offset};
        }
        if (natural && at & (size - 1)) {
            finding* f = record_finding(MISALIGNED, position, 0, number);
            if (f) f->written = written, f->size = size, f->offset = (long long)offset;
        }
        if (r->constant && written) {
            r->constant = 0;
            close_sites();
        }
        if (r->constant) {
            if (s && !written && !is_logged) open_site(s, r->start, r->size, size, number + 1, 0);
            return;
        }
        const mark mine = make_mark(thread, atomic, from), oldest = oldest_mark(r);
        const u64 last = (offset + size - 1) >> r->shift;
        for (u64 i = offset >> r->shift; i <= last; ++i) {
            unit* u = &r->units[i];
            if (u->writer < oldest) u->writer = 0;
            if (u->reader < oldest) u->reader = u->later = 0;
            if (written) write_unit(r, i, mine, thread, size);
            else read_unit(r, i, mine, thread, size);
        }
        if (s) s->region = number + 1;
        if (s && !written && !is_logged && size == 1u << r->shift) {
            open_site(s, r->start, r->size, size, number + 1, r->units);
        }
        return;
    }
    if (at >= (u64)image && at < (u64)image_end) return;  // a constant of the program
    report_stray(at, size, written, position, w);
}
