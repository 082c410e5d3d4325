// Functions that clang's thread sanitizer calls. The file that includes this defines `record_access(address, size,
// written, atomic, from)`.
#define FROM ((address)__builtin_return_address(0))
HIDDEN void __tsan_init(void) {}
HIDDEN void __tsan_func_entry(void* p) {}
HIDDEN void __tsan_func_exit(void) {}
#define READ(name, n) HIDDEN void __tsan_##name##n(void* p) { record_access((u64)p, n, 0, 0, FROM); }
#define WRITE(name, n) HIDDEN void __tsan_##name##n(void* p) { record_access((u64)p, n, 1, 0, FROM); }
#define BOTH(name, n) \
    HIDDEN void __tsan_##name##n(void* p) { \
        record_access((u64)p, n, 0, 0, FROM); \
        record_access((u64)p, n, 1, 0, FROM); \
    }
#define ACCESS(n) \
    READ(read, n) READ(unaligned_read, n) READ(volatile_read, n) READ(unaligned_volatile_read, n) \
    WRITE(write, n) WRITE(unaligned_write, n) WRITE(volatile_write, n) WRITE(unaligned_volatile_write, n) \
    BOTH(read_write, n) BOTH(unaligned_read_write, n)
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
HIDDEN void __tsan_read_range(void* p, u64 n) { record_access((u64)p, (u32)n, 0, 0, FROM); }
HIDDEN void __tsan_write_range(void* p, u64 n) { record_access((u64)p, (u32)n, 1, 0, FROM); }

HIDDEN void* __tsan_memmove(char* to, const char* from, u64 n) {
    if (n) record_access((u64)from, (u32)n, 0, 0, FROM), record_access((u64)to, (u32)n, 1, 0, FROM);
    if (to < from) for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = from[i];
    else for (u64 i = n; i-- > 0;) ((volatile char*)to)[i] = from[i];
    return to;
}
HIDDEN void* __tsan_memcpy(char* to, const char* from, u64 n) { return __tsan_memmove(to, from, n); }
HIDDEN void* __tsan_memset(char* to, int value, u64 n) {
    if (n) record_access((u64)to, (u32)n, 1, 0, FROM);
    for (u64 i = 0; i < n; ++i) ((volatile char*)to)[i] = (char)value;
    return to;
}

#define MODIFY(bits, T, name) \
    HIDDEN T __tsan_atomic##bits##_##name(volatile T* p, T v, int order) { \
        record_access((u64)p, bits / 8, 1, 1, FROM); \
        return __atomic_##name(p, v, __ATOMIC_SEQ_CST); \
    }
#define ATOMICS(bits, T) \
    HIDDEN T __tsan_atomic##bits##_load(const volatile T* p, int order) { \
        record_access((u64)p, bits / 8, 0, 1, FROM); \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN void __tsan_atomic##bits##_store(volatile T* p, T v, int order) { \
        record_access((u64)p, bits / 8, 1, 1, FROM); \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST); \
    } \
    HIDDEN T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T v, int order, int failure) { \
        record_access((u64)p, bits / 8, 1, 1, FROM); \
        __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return expected; \
    } \
    HIDDEN T __tsan_atomic##bits##_exchange(volatile T* p, T v, int order) { \
        record_access((u64)p, bits / 8, 1, 1, FROM); \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); \
    } \
    MODIFY(bits, T, fetch_add) MODIFY(bits, T, fetch_sub) MODIFY(bits, T, fetch_and) MODIFY(bits, T, fetch_or) \
    MODIFY(bits, T, fetch_xor) MODIFY(bits, T, fetch_nand)
ATOMICS(8, u8) ATOMICS(16, __UINT16_TYPE__) ATOMICS(32, u32) ATOMICS(64, u64)
HIDDEN void __tsan_atomic_thread_fence(int order) {}
HIDDEN void __tsan_atomic_signal_fence(int order) {}
