// The updates of a scatter, sorted into 256 buckets by the high bits of their positions, and their effect on an
// element. Source: as gather.metal.
#pragma once
#include <metalnb/storage.h>

struct Updates {
    uint count;
    uint rows;   // of `values`: count, or 1 row for all
    uint inner;
    uint bits;   // the bits in which the positions of one bucket may differ
};

constant constexpr uint BUCKETS = 256;

template <typename T>
struct Put {
    using Memory = T;
    static T update(T, T value) { return value; }
};
template <typename T>
struct Add {
    using Memory = memory_of<T>;
    static Memory update(Memory old, Memory value) {
        return storage<T>::store(storage<T>::load(old) + storage<T>::load(value));
    }
};

#define MAKE_SCATTER(suffix, ...) \
    template [[host_name("scatter_" #suffix)]] [[kernel]] decltype(scatter<__VA_ARGS__>) scatter<__VA_ARGS__>;
#define MAKE_SCATTERS                      \
    MAKE_SCATTER(put_8, Put<uchar>)        \
    MAKE_SCATTER(put_16, Put<ushort>)      \
    MAKE_SCATTER(put_32, Put<uint>)        \
    MAKE_SCATTER(put_64, Put<ulong>)       \
    MAKE_SCATTER(add_8, Add<uchar>) /* signed and unsigned integers add in the same way */ \
    MAKE_SCATTER(add_16, Add<ushort>)      \
    MAKE_SCATTER(add_32, Add<uint>)        \
    MAKE_SCATTER(add_64, Add<ulong>)       \
    MAKE_SCATTER(add_float16, Add<half>)   \
    MAKE_SCATTER(add_bfloat16, Add<bfloat16>) \
    MAKE_SCATTER(add_float32, Add<float>)
