// SHA-256 (FIPS 180-4) of one 64-byte message per thread: a proof-of-work search for nonces whose digest begins with
// enough zero bits keeps the smallest one found by an atomic minimum.
#include <metal_stdlib>
using namespace metal;

constant uint K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROTR(x, n) rotate((uint)(x), (uint)(32 - (n)))
#define CH(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define MAJ(x, y, z) (((x) & (y)) | ((x) & (z)) | ((y) & (z)))

static void compress(thread uint *state, thread uint *w) {
    uint v[8];
    for (int i = 0; i < 8; i++) v[i] = state[i];
#pragma unroll
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            const uint s0 = ROTR(w[(i + 1) & 15], 7) ^ ROTR(w[(i + 1) & 15], 18) ^ (w[(i + 1) & 15] >> 3);
            const uint s1 = ROTR(w[(i + 14) & 15], 17) ^ ROTR(w[(i + 14) & 15], 19) ^ (w[(i + 14) & 15] >> 10);
            w[i & 15] += s0 + w[(i + 9) & 15] + s1;
        }
        const uint t1 = v[7] + (ROTR(v[4], 6) ^ ROTR(v[4], 11) ^ ROTR(v[4], 25)) + CH(v[4], v[5], v[6]) + K[i] + w[i & 15];
        const uint t2 = (ROTR(v[0], 2) ^ ROTR(v[0], 13) ^ ROTR(v[0], 22)) + MAJ(v[0], v[1], v[2]);
        for (int j = 7; j > 0; j--) v[j] = v[j - 1];
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

struct digest { uint words[8]; };

static digest sha256_of_block(device const packed_uint4 *message, uint nonce) {
    digest d = {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
    uint w[16];
    for (int i = 0; i < 16; i++) w[i] = as_type<uint>(as_type<uchar4>(message[i / 4][i % 4]).wzyx);  // big-endian
    w[15] = nonce;
    compress(d.words, w);
    uint padding[16] = {0x80000000};
    padding[15] = 512;
    compress(d.words, padding);
    return d;
}

kernel void sha256_search(device const packed_uint4 *message [[buffer(0)]],
                          device digest *digests [[buffer(1)]],
                          device atomic_uint *found [[buffer(2)]],
                          constant ushort &zero_bits [[buffer(3)]],
                          uint nonce [[thread_position_in_grid]]) {
    const digest d = sha256_of_block(message, nonce);
    digests[nonce] = d;
    if (clz(d.words[0]) >= zero_bits) atomic_fetch_min_explicit(found, nonce, memory_order_relaxed);
}
