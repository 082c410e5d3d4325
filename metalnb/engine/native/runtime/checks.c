// The checked build: fibers, of whose every access clang's thread sanitizer tells us, its other sanitizers of indexes and
// conversions, and watched_code.py of values, shifts and loops. One threadgroup runs after the other, on one core.
//
// Of each unit of memory that is watched the last writer is kept, and three readers: the first one, the last one and the
// one before it. Two threads meet there wrongly when one of them writes, not both are atomic, and nothing orders them: a
// barrier of their threadgroup, or of their SIMD-group, between the two. Nothing orders two threadgroups.
#define CHECKED
#define AT_BARRIER(w) barrier_of(w)
#define AT_START(w, i) group_of(w, i)
#define GAP 4096  // between threadgroup variables
#include "dispatch.h"
static void barrier_of(void* worker);
static void group_of(void* worker, u64 index);
#include "fibers.c"

enum { VALID = 1, ATOMIC = 2, SEEN = 4, AGAIN = 8 };
// Of a writer, SEEN: somebody has read it since; AGAIN: it wrote over what nobody had read.
enum kind {
    BEYOND, RACE, UNWRITTEN, BARRIER, WILD, INDEX, CONVERSION, SHIFT, MISALIGNED, TWICE, ENDLESS, OWN_UNWRITTEN
};

typedef struct {
    u32 group, place;  // place: of the code, from the start of its image
    unsigned short thread, epoch, turn, flags;
} mark;
typedef struct { mark writer, first, last, previous; } unit;  // of a cache line

typedef struct {  // a buffer or a threadgroup variable
    u64 start, size;   // in memory, in bytes
    u64 before, after; // around it, bytes in which an access goes wrong without harm
    u32 shift;         // of a unit's size
    u32 shared;        // 1: each threadgroup has its own
    unit* units;
    u64 reads, writes, strays, atomics;
} watched;

typedef struct {  // an access, as it is logged; the thread is numbered in its threadgroup
    u32 thread, group, region, written;
    long long offset;
} event;

typedef struct {  // where a thread first made a NaN, or an infinity
    u32 place, operation;  // operation: its number, and in the last two bits how many operands it has
    float made, given[3];
} origin;

typedef struct {
    u32 kind, written, size, count;
    u32 thread, group, place, region;
    long long offset;  // from the region's start, in bytes; of an index, the index
    u32 other, other_group, other_place, other_written;
    float given;  // of a conversion, what does not fit; NaN where that is not known
} finding;

#define FINDINGS 256
typedef struct {  // what is watched, and the memory for what is seen: checked_run.py fills it
    watched* regions;
    finding* findings;
    event* events;
    origin* origins;  // two for each thread of the grid
    u64 count, most_events, most_origins;
    u64 found, events_found, accesses;
    u64 stopped;  // 1: the time is over, and loops look who takes it; 2: every thread ends
} watch;
static watch* state;
static u32 group_number, epoch, killed;
static unsigned short turns[SIMDGROUPS * LANES];

extern const char image_end[] __asm("_end") HIDDEN;
void* mmap(void*, u64 bytes, int protection, int flags, int file, long offset);

__attribute__((visibility("default"))) u32 metalnb_slots(u32* into) {
    u32 n = 0;
    for (; slots + n != slots_end; ++n) {
        into[4 * n] = offsets[n];
        into[4 * n + 1] = slots[n].size;
        into[4 * n + 2] = slots[n].alignment;
        into[4 * n + 3] = slots[n].id;
    }
    return n;
}
__attribute__((visibility("default"))) u64 metalnb_image(void) { return (u64)image; }
__attribute__((visibility("default"))) u64 metalnb_arena_of(u64 worker) { return worker + ARENA; }
HIDDEN u64* metalnb_stopping;         // for loops
static u32 late_thread, late_turns;  // who is in one when the time is over, and how long since
__attribute__((visibility("default"))) void metalnb_watch(watch* given) {
    state = given;
    metalnb_stopping = &given->stopped;
    late_thread = late_turns = 0;
}

static void group_of(void* worker_, u64 index) {
    worker* w = worker_;
    group_number = (u32)index;
    if (state->stopped) state->stopped = 2;
    epoch = killed = 0;
    for (u32 i = 0; i < w->simdgroups * LANES; ++i) turns[i] = 0;
}

static u32 index_in_group(const worker* w) { return (u32)(w->here - w->all) * LANES + w->lane; }

static u32 in_grid(const worker* w, u32 i) {
    const region* r = &w->group;
    const u32 x = i % r->size.x, y = i / r->size.x % r->size.y, z = i / (r->size.x * r->size.y);
    return ((r->first.z * r->nominal.z + z) * r->grid.y + r->first.y * r->nominal.y + y) * r->grid.x +
           r->first.x * r->nominal.x + x;
}

static finding* noted(u32 kind, u32 place, u32 other_place, u32 region_number) {
    if (state->stopped > 1) return 0;
    for (u32 i = 0; i < state->found; ++i) {
        finding* f = &state->findings[i];
        if (f->kind == kind && f->place == place && f->other_place == other_place && f->region == region_number) {
            ++f->count;
            return 0;
        }
    }
    if (state->found == FINDINGS) return 0;
    finding* f = &state->findings[state->found++];
    *f = (finding){.kind = kind, .place = place, .other_place = other_place, .region = region_number, .count = 1};
    worker* w = self();
    f->thread = in_grid(w, index_in_group(w));
    f->group = group_number;
    return f;
}

static int ordered(const mark* m, u32 thread, unsigned short turn) {
    if (m->group != group_number) return 0;
    if (m->epoch != (unsigned short)epoch) return 1;
    // of one SIMD-group, and a barrier of it between
    return m->thread / LANES == thread / LANES && m->turn != turn;
}

static void met(u32 written, const mark* other, u32 other_written, u32 place, u32 number, u64 offset, u32 size) {
    finding* f = noted(RACE, place, other->place, number);
    if (!f) return;
    f->written = written;
    f->offset = (long long)offset;
    f->size = size;
    f->other_group = other->group;
    f->other_written = other_written;
    f->other = other->thread;
}

/// An access of `size` bytes. Threads in marks are numbered in their threadgroup, but in findings in the grid.
/// `natural`: the address should be a multiple of the size.
static void accessed(u64 at, u32 size, u32 written, u32 atomic, u32 natural, address from) {
    worker* w = self();
    const u64 own = (u64)w;
    if (at >= own && at < own + REGION && (at < w->arena || at >= w->arena + (64 << 20))) return;  // its own stack
    if (state->stopped > 1) end(w);
    const u32 place = (u32)(from - (address)image);
    static u8 guessed[256];  // the region of an address, by some of its bits: mostly right
    u8* guess = &guessed[at >> 10 & 255];
    for (u32 tried = 0, number = *guess; tried < state->count; ++tried, ++number) {
        if (number >= state->count) number = 0;
        watched* r = &state->regions[number];
        const u64 offset = at - r->start;
        if (offset + size > r->size || offset > r->size) continue;
        *guess = (u8)number;
        ++state->accesses;
        ++*(written ? &r->writes : &r->reads);
        r->atomics += atomic;
        const u32 thread = index_in_group(w);
        if (state->events_found < state->most_events && !r->shared) {
            state->events[state->events_found++] = (event){thread, group_number, number, written, (long long)offset};
        }
        if (natural && at & (size - 1)) {
            finding* f = noted(MISALIGNED, place, 0, number);
            if (f) f->written = written, f->size = size, f->offset = (long long)offset;
        }
        const unsigned short turn = turns[thread];
        const mark mine = {group_number, place, (unsigned short)thread, (unsigned short)epoch, turn,
                           VALID | (atomic ? ATOMIC : 0)};
        const u64 last = (offset + size - 1) >> r->shift;
        for (u64 i = offset >> r->shift; i <= last; ++i) {
            unit* u = &r->units[i];
            const u64 byte = i << r->shift;
            mark* writer = &u->writer;
            if (r->shared && (writer->flags & VALID) && writer->group != group_number) writer->flags = 0;
            if (r->shared && (u->first.flags & VALID) && u->first.group != group_number) {
                u->first.flags = u->last.flags = u->previous.flags = 0;
            }
            const int other_writer = (writer->flags & VALID) &&
                (writer->thread != thread || writer->group != group_number) && !ordered(writer, thread, turn) &&
                !(atomic && writer->flags & ATOMIC);
            if (other_writer) met(written, writer, 1, place, number, byte, size);
            if (!written) {
                if (!(writer->flags & SEEN)) writer->flags |= SEEN;
                if (r->shared && !(writer->flags & VALID)) {
                    finding* f = noted(UNWRITTEN, place, 0, number);
                    if (f) f->offset = (long long)byte, f->size = size;
                }
                if (!(u->first.flags & VALID)) u->first = mine;
                if (u->last.thread != thread || u->last.group != group_number) u->previous = u->last;
                u->last = mine;
                continue;
            }
            const mark* readers[3] = {&u->last, &u->previous, &u->first};
            for (int k = 0; k < 3 && !other_writer; ++k) {
                const mark* m = readers[k];
                if ((m->flags & VALID) && (m->thread != thread || m->group != group_number) &&
                    !ordered(m, thread, turn) && !(atomic && m->flags & ATOMIC)) {
                    met(1, m, 0, place, number, byte, size);
                    break;
                }
            }
            // Of one thread's own writes clang leaves out the reads between them.
            if (!r->shared && !other_writer && !atomic && (writer->flags & (VALID | SEEN | ATOMIC)) == VALID &&
                (writer->thread != thread || writer->group != group_number)) {
                finding* f = noted(TWICE, place, writer->place, number);
                writer->flags |= AGAIN;
                if (f) {
                    f->written = f->other_written = 1, f->size = size, f->offset = (long long)byte;
                    f->other = writer->thread, f->other_group = writer->group;
                }
            }
            const unsigned short again = writer->flags & AGAIN;
            *writer = mine;
            writer->flags |= again;
        }
        return;
    }
    if (at >= (u64)image && at < (u64)image_end) return;      // a constant of the program
    ++state->accesses;
    u32 nearest = ~0u;
    u64 least_distance = ~0ull;
    for (u32 number = 0; number < state->count; ++number) {
        const watched* r = &state->regions[number];
        const u64 distance = at < r->start ? r->start - at : at - r->start < r->size ? 0 : at - r->start - r->size;
        const int reach = at < r->start ? distance <= r->before : distance <= r->after;
        if (reach && distance < least_distance) nearest = number, least_distance = distance;
    }
    if (nearest != ~0u) {
        watched* r = &state->regions[nearest];
        ++r->strays;
        if (state->events_found < state->most_events && !r->shared) {
            const long long offset = (long long)(at - r->start);
            state->events[state->events_found++] = (event){index_in_group(w), group_number, nearest, written | 2, offset};
        }
    }
    finding* f = noted(nearest == ~0u ? WILD : BEYOND, place, 0, nearest);
    if (f) {
        f->written = written;
        f->size = size;
        f->offset = nearest == ~0u ? (long long)at : (long long)(at - state->regions[nearest].start);
    }
    if (nearest == ~0u) {
        ++killed;
        end(w);
    }
}

/// All threads that are left are at barriers, or none is left.
static void barrier_of(void* worker_) {
    worker* w = worker_;
    const u32 threads = w->group.size.x * w->group.size.y * w->group.size.z;
    u32 waiting = 0, missing = ~0u, at = 0;
    address site = 0, other = 0;
    for (u32 i = 0; i < threads; ++i) {
        const simdgroup* g = &w->all[i / LANES];
        if (!(g->waiting >> (i % LANES) & 1)) {
            if (missing == ~0u) missing = i;
            continue;
        }
        ++waiting;
        if (!site) site = g->site[i % LANES], at = i;
        else if (g->site[i % LANES] != site) other = g->site[i % LANES];
    }
    if (state->stopped) state->stopped = 2;
    if (state->stopped) return;
    if (waiting && waiting + killed < threads) {
        finding* f = noted(BARRIER, (u32)(site - (address)image), 0, ~0u);
        if (f) f->thread = in_grid(w, missing), f->other = in_grid(w, at);
    } else if (other) {
        finding* f = noted(BARRIER, (u32)(site - (address)image), (u32)(other - (address)image), ~0u);
        if (f) f->thread = in_grid(w, at);
    }
    ++epoch;
}

HIDDEN void metalnb_ordered(void) { ++turns[index_in_group(self())]; }

#include "hooks.h"
