// Gather rows by index (negative ones count from the end), and scatter them with addition; the row is copied in float4.
#include <metal_stdlib>
using namespace metal;

template <typename IdxT>
METAL_FUNC size_t row_of(IdxT index, size_t rows) {
    if (is_unsigned_v<IdxT>) {
        return index;
    } else {
        return index < 0 ? index + rows : index;
    }
}

template <typename IdxT>
[[kernel]] void gather(const device float4* table [[buffer(0)]],
                       const device IdxT* indices [[buffer(1)]],
                       device float4* out [[buffer(2)]],
                       const constant size_t& rows [[buffer(3)]],
                       uint2 at [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]]) {
    const auto row = row_of(indices[at.y], rows);
    out[size_t(at.y) * size.x + at.x] = table[row * size.x + at.x];
}

template <typename IdxT>
[[kernel]] void scatter_add(const device float4* updates [[buffer(0)]],
                            const device IdxT* indices [[buffer(1)]],
                            device metal::atomic<float>* table [[buffer(2)]],
                            const constant size_t& rows [[buffer(3)]],
                            uint2 at [[thread_position_in_grid]],
                            uint2 size [[threads_per_grid]]) {
    const float4 update = updates[at.y * size.x + at.x];
    device atomic<float>* to = table + 4 * (row_of(indices[at.y], rows) * size.x + at.x);
    for (ushort i = 0; i < 4; ++i)
        atomic_fetch_add_explicit(to + i, update[i], memory_order_relaxed);
}

#define instantiate(itype)                                                                               \
    template [[host_name("gather_" #itype)]] [[kernel]] decltype(gather<itype>) gather<itype>;           \
    template [[host_name("scatter_add_" #itype)]] [[kernel]] decltype(scatter_add<itype>) scatter_add<itype>;

instantiate(int)
instantiate(uint8_t)
instantiate(int64_t)
