// y = W x with W quantized to four bits: blocks of 32 weights share a half scale, and a byte holds weight i in its
// low nibble and weight i + 16 in its high one, both biased by 8. Each SIMD-group computes four rows; each thread takes
// half a block at a time.
#include <metal_stdlib>
using namespace metal;

#define QK 32
#define ROWS_PER_SIMDGROUP 4
#define THREADS_PER_SIMDGROUP 32

typedef struct {
    half d;
    uint8_t qs[QK / 2];
} block_q4;

static_assert(sizeof(block_q4) == sizeof(half) + QK / 2, "wrong block size");

struct matvec_args {
    int32_t ne00;   // weights in a row
    int32_t ne01;   // rows
    uint64_t nb01;  // bytes from row to row
};

// Half a block times 16 inputs. The high nibbles are not shifted: their inputs were divided by 16.
inline float block_dot(device const block_q4 * blk, float sumy, thread float * yl, int il) {
    const float d = blk->d;
    float2 acc = 0.f;

    device const uint16_t * qs = ((device const uint16_t *) blk + 1 + il/2);
    for (int i = 0; i < 8; i += 2) {
        acc[0] += yl[i + 0] * (qs[i / 2] & 0x000F)
                + yl[i + 1] * (qs[i / 2] & 0x0F00);
        acc[1] += yl[i + 8] * (qs[i / 2] & 0x00F0)
                + yl[i + 9] * (qs[i / 2] & 0xF000);
    }
    return d * (sumy * -8.f + acc[0] + acc[1]);
}

kernel void q4_matvec(
        constant matvec_args & args [[buffer(0)]],
        device const char  * src0   [[buffer(1)]],
        device const float * src1   [[buffer(2)]],
        device       float * dst    [[buffer(3)]],
        uint   tgpig [[threadgroup_position_in_grid]],
        ushort tiisg [[thread_index_in_simdgroup]],
        ushort sgitg [[simdgroup_index_in_threadgroup]],
        ushort nsg   [[simdgroups_per_threadgroup]]) {
    const int nb = args.ne00 / QK;
    const int first_row = (tgpig * nsg + sgitg) * ROWS_PER_SIMDGROUP;

    float yl[16];
    float sumf[ROWS_PER_SIMDGROUP] = {0.f};

    const int ix = tiisg / 2;
    const int il = (tiisg % 2) * 8;

    device const float * yb = src1 + ix * QK + il;

    for (int ib = ix; ib < nb; ib += THREADS_PER_SIMDGROUP / 2) {
        float sumy = 0;
        for (int i = 0; i < 8; i += 2) {
            sumy    += yb[i] + yb[i + 1];
            yl[i+0]  = yb[i + 0];
            yl[i+1]  = yb[i + 1] / 256.f;

            sumy    += yb[i + 16] + yb[i + 17];
            yl[i+8]  = yb[i + 16] / 16.f;
            yl[i+9]  = yb[i + 17] / 4096.f;
        }

#pragma unroll(ROWS_PER_SIMDGROUP)
        for (int row = 0; row < ROWS_PER_SIMDGROUP; row++) {
            if (first_row + row >= args.ne01) break;
            device const block_q4 * x = (device const block_q4 *) (src0 + (first_row + row) * args.nb01);
            sumf[row] += block_dot(x + ib, sumy, yl, il);
        }
        yb += QK * 16;
    }

    for (int row = 0; row < ROWS_PER_SIMDGROUP && first_row + row < args.ne01; ++row) {
        const float tot = simd_sum(sumf[row]);
        if (tiisg == 0) {
            dst[first_row + row] = tot;
        }
    }
}
