// Buffers that watch themselves: each access by index is noted, and one beyond the end is noted and not made.
// A kernel is compiled a second time with its buffers replaced by these; see rewrite.py.
#pragma once
#include <metal_stdlib>

namespace watching {
using namespace metal;

// The log: word 0 counts the events; then three words for each: the thread, the index, and what it did:
// buffer (4 bits up) | before the start (8) | beyond the end (4) | written (2)
// The last two words are what atomics beyond an end are given instead.
constant constexpr uint EVENTS = 1u << 20;
constant constexpr uint SPARE = 2 + 3 * EVENTS;  // even: an atomic may have eight bytes

struct Watcher {
    device atomic_uint* log;
    uint who;

    void note(uint buffer, bool written, bool beyond, long index) const {
        uint slot = atomic_fetch_add_explicit(&log[0], 1u, memory_order_relaxed);
        if (slot >= EVENTS) return;
        uint deed = (buffer << 4) | (uint(index < 0) << 3) | (uint(beyond) << 2) | (uint(written) << 1);
        device atomic_uint* event = log + 1 + 3 * slot;
        atomic_store_explicit(&event[0], who, memory_order_relaxed);
        atomic_store_explicit(&event[1], uint(index), memory_order_relaxed);
        atomic_store_explicit(&event[2], deed, memory_order_relaxed);
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

    bool beyond() const { return index < 0 || index >= long(size); }
    T get() const {
        watcher.note(buffer, false, beyond(), index);
        return beyond() ? T(0) : data[index];
    }
    T set(T value) const {
        watcher.note(buffer, true, beyond(), index);
        if (!beyond()) data[index] = value;
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
        return beyond ? (device A*)(watcher.log + SPARE) : data + index;
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
