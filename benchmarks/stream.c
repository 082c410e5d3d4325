/* STREAM's copy (McCalpin, 1995) on several threads: the bandwidth that plain C reaches.

   copy_plain stores as any program does: a cache line is read before it is written to, so that a copy moves three bytes
   for every two that count. copy_streaming bypasses the caches (non-temporal stores) and avoids that read. Metal
   Shading Language has no such store, so compare a limit's kernels with the plain copy. */

#include <immintrin.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define MOST 64

typedef struct { float *a; const float *b; size_t n; int streaming; pthread_barrier_t *gate; double began, ended; } Part;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void copy_plain(float *restrict a, const float *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i];
}

static void copy_streaming(float *restrict a, const float *restrict b, size_t n) {
    for (size_t i = 0; i < n; i += 8) _mm256_stream_ps(a + i, _mm256_load_ps(b + i));
    _mm_sfence();
}

static void *work(void *given) {
    Part *part = given;
    pthread_barrier_wait(part->gate);
    part->began = now();
    (part->streaming ? copy_streaming : copy_plain)(part->a, part->b, part->n);
    part->ended = now();
    return NULL;
}

/* Copy n floats, a multiple of 16 for each thread, from b to a, both aligned to 64 bytes; return the seconds from the
first thread's start to the last one's end. No extra thread takes the time: with every processor busy it would be
scheduled late. */ double stream_copy(float *a, const float *b, size_t n, int threads, int streaming) {
    pthread_t ids[MOST];
    Part parts[MOST];
    pthread_barrier_t gate;
    size_t each = n / threads;
    pthread_barrier_init(&gate, NULL, threads);
    for (int t = 0; t < threads; t++) {
        parts[t] = (Part){a + t * each, b + t * each, each, streaming, &gate, 0, 0};
        pthread_create(&ids[t], NULL, work, &parts[t]);
    }
    double began = 0, ended = 0;
    for (int t = 0; t < threads; t++) {
        pthread_join(ids[t], NULL);
        if (!t || parts[t].began < began) began = parts[t].began;
        if (!t || parts[t].ended > ended) ended = parts[t].ended;
    }
    pthread_barrier_destroy(&gate);
    return ended - began;
}
