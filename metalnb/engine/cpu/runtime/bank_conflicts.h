// Counts bank conflicts: part of counts.c.
//
// Threadgroup memory is divided into banks, and consecutive 4-byte words are in consecutive banks. In one pass, each
// bank serves one word, to all lanes that access it. Lanes conflict if they access different words of one bank:
// each further word takes another pass.
#define MAX_BANKS 64

/// The lanes that share a pass: all of a SIMD-group if each accesses up to 4 bytes, half of them for 8, a quarter for
/// 16.
static u32 lanes_of_pass(u32 size) { return size <= 4 ? LANES : size <= 8 ? LANES / 2 : LANES / 4; }

/// The passes that the lanes from `first` to `end` need: the largest number of words requested from one bank.
static u32 bank_passes(const u64* a, u32 mask, u32 first, u32 end, u32 size) {
    u64 low = ~0ull, high = 0;
    for (u32 lane = first; lane < end; ++lane) {
        const u64 offset = a[lane] - counted.shared_start, last = offset + size - 1;
        const u32 active = mask >> lane & 1;
        low = active && offset < low ? offset : low, high = active && last > high ? last : high;
    }
    if (low > high) return 0;
    const u32 banks = (u32)counted.banks;
    if ((high >> 2) - (low >> 2) < banks) return 1;
    u64 held[MAX_BANKS][LANES];
    u8 count[MAX_BANKS] = {0};
    u32 most = 0;
    for (u32 lane = first; lane < end; ++lane) {
        if (!(mask >> lane & 1)) continue;
        const u64 offset = a[lane] - counted.shared_start;
        for (u64 word = offset >> 2, last = (offset + size - 1) >> 2; word <= last; ++word) {
            const u32 bank = banks & (banks - 1) ? (u32)word % banks : (u32)word & (banks - 1);
            u32 known = 0;
            for (u32 i = 0; i < count[bank]; ++i) known |= held[bank][i] == word;
            if (known || count[bank] == LANES) continue;
            held[bank][count[bank]++] = word;
            if (count[bank] > most) most = count[bank];
        }
    }
    return most;
}
