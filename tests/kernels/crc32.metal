// CRC-32 of many messages at once, one per thread, with slice-by-four tables that a first kernel builds on the device.
#include <metal_stdlib>
using namespace metal;

typedef uint32_t crc_t;
constant crc_t polynomial = 0xEDB88320;

kernel void crc_tables(device crc_t (*tables)[256], uint byte [[thread_position_in_grid]]) {
    crc_t c = byte;
    for (int table = 0; table < 4; ++table) {
        for (int bit = 0; bit < 8; ++bit) c = c & 1 ? (c >> 1) ^ polynomial : c >> 1;
        tables[table][byte] = c;
    }
}

kernel void crc32(device const uchar *bytes,
                  device const ulong *offsets,   // one more than there are messages
                  constant crc_t (*tables)[256],
                  device crc_t *sums,
                  uint i [[thread_position_in_grid]]) {
    ulong at = offsets[i];
    const ulong end = offsets[i + 1];
    crc_t c = ~0u;
    for (; at + 4 <= end; at += 4) {
        c ^= bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | crc_t(bytes[at + 3]) << 24;
        c = tables[3][c & 0xff] ^ tables[2][c >> 8 & 0xff] ^ tables[1][c >> 16 & 0xff] ^ tables[0][c >> 24];
    }
    for (; at < end; ++at) c = tables[0][(c ^ bytes[at]) & 0xff] ^ c >> 8;
    sums[i] = ~c;
}
