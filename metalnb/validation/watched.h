// Buffers that watch themselves: each access by index is noted, and one beyond the end is noted and not made.
// A kernel is compiled a second time with its buffers replaced by these; see watched_source.py.
#pragma once
#include <metal_stdlib>

namespace watching {
using namespace metal;

// Where things stand in the ledger, in words. Its sizes are the host's to choose; see access_log.py, which says the same.
constant constexpr uint SPARE = 2;  // what atomics beyond an end are given instead: even, as one may have eight bytes
constant constexpr uint LOG = 16;
constant constexpr uint READS = 0, WRITES = 2, BEYOND = 4, STRAYS = 16;  // from the start of a buffer's own part

// And in the sizes: how many events and strays are kept, the threadgroup's size, how many threadgroups there are; then
// for each buffer how many elements it has, and where its part starts and the words for its elements: in units of 16.
constant constexpr uint THREADGROUP = 2, GROUPS = 5, BUFFERS = 8;

// A thread's number, threadgroup by threadgroup: the lowest and the highest tell whether two threadgroups met.
inline uint number(uint3 at, constant uint* sizes) {
    uint3 size = uint3(sizes[THREADGROUP], sizes[THREADGROUP + 1], sizes[THREADGROUP + 2]);
    uint3 group = at / size, own = at % size;
    uint groups = (group.z * sizes[GROUPS + 1] + group.y) * sizes[GROUPS] + group.x;
    return ((groups * size.z + own.z) * size.y + own.y) * size.x + own.x;
}

struct Watcher {
    device atomic_uint* ledger;
    constant uint* sizes;
    uint who;

    void note(uint buffer, bool written, bool beyond, long index) const {
        device atomic_uint* own = part(sizes[BUFFERS + 3 * buffer + 1]);
        count(own + (beyond ? BEYOND : written ? WRITES : READS));
        device atomic_uint* taken = beyond ? own + BEYOND + 2 : ledger;
        uint places = sizes[beyond ? 1 : 0];
        if (atomic_load_explicit(taken, memory_order_relaxed) >= places) return;  // so it cannot wrap
        uint place = atomic_fetch_add_explicit(taken, 1u, memory_order_relaxed);
        if (place >= places) return;
        device atomic_uint* event = (beyond ? own + STRAYS : ledger + LOG) + 3 * place;
        atomic_store_explicit(&event[0], who, memory_order_relaxed);
        atomic_store_explicit(&event[1], uint(index), memory_order_relaxed);
        uint deed = (buffer << 4) | (uint(index < 0) << 3) | (uint(beyond) << 2) | (uint(written) << 1);
        atomic_store_explicit(&event[2], deed, memory_order_relaxed);
    }

    // Four words for an element: the last and the first that wrote it, the last and the first that read it.
    void mark(uint buffer, bool written, long index) const {
        device atomic_uint* words = part(sizes[BUFFERS + 3 * buffer + 2]) + 4 * ulong(index) + (written ? 0 : 2);
        raise(words, who + 1);
        raise(words + 1, ~who);
    }

    device atomic_uint* part(uint start) const { return ledger + 16 * ulong(start); }
    static void raise(device atomic_uint* word, uint to) {
        if (atomic_load_explicit(word, memory_order_relaxed) < to)
            atomic_fetch_max_explicit(word, to, memory_order_relaxed);
    }
    static void count(device atomic_uint* low) {
        if (atomic_fetch_add_explicit(low, 1u, memory_order_relaxed) == ~0u)
            atomic_fetch_add_explicit(low + 1, 1u, memory_order_relaxed);
    }
};

template <typename T>
struct Input {
    device const T* data;
    uint size;
    uint buffer;
    Watcher watcher;

    T operator[](long index) const {
        bool beyond = index < 0 || index >= long(size);
        watcher.note(buffer, false, beyond, index);
        return beyond ? T(0) : data[index];
    }
};

// One element of an output: read, or written, when the kernel does so.
template <typename T>
struct Element {
    device T* data;
    uint size;
    uint buffer;
    Watcher watcher;
    long index;

    bool seen(bool written) const {
        bool beyond = index < 0 || index >= long(size);
        watcher.note(buffer, written, beyond, index);
        if (!beyond) watcher.mark(buffer, written, index);
        return !beyond;
    }
    T get() const { return seen(false) ? data[index] : T(0); }
    T set(T value) const {
        if (seen(true)) data[index] = value;
        return value;
    }
    operator T() const { return get(); }
    T operator=(T value) const { return set(value); }
    T operator+=(T value) const { return set(get() + value); }
    T operator-=(T value) const { return set(get() - value); }
    T operator*=(T value) const { return set(get() * value); }
    T operator/=(T value) const { return set(get() / value); }
};

template <typename T>
struct Output {
    device T* data;
    uint size;
    uint buffer;
    Watcher watcher;

    Element<T> operator[](long index) const { return Element<T>{data, size, buffer, watcher, index}; }
};

// An element of an array of atomics. It is used by its address: who asks for that is noted.
template <typename A>
struct Place {
    device A* data;
    uint size;
    uint buffer;
    Watcher watcher;
    long index;

    device A* operator&() const {
        bool beyond = index < 0 || index >= long(size);
        watcher.note(buffer, true, beyond, index);
        return beyond ? (device A*)(watcher.ledger + SPARE) : data + index;
    }
};

template <typename A>
struct Atomics {
    device A* data;
    uint size;
    uint buffer;
    Watcher watcher;

    template <typename I> Place<A> operator[](I index) const { return Place<A>{data, size, buffer, watcher, long(index)}; }
    template <typename I> device A* operator+(I index) const { return &(*this)[index]; }
};
}  // namespace watching
