/* Outputs of a large batch go past the caches: what is in none need not be fetched to be overwritten. Floats take longer.
   BYTES: those of a vector. */

#if BYTES == 64 && defined(__AVX512F__)
#define STORE __builtin_ia32_movntdq512
#elif BYTES == 32 && defined(__AVX__)
#define STORE __builtin_ia32_movntdq256
#endif

/* Whether a cache holds no more than the last of the outputs of N states, of n numbers each. */
#if defined(STORE) && !defined(SINGLE)
#define ARE_MANY(N, n) ((double)(N) * (double)(n) * sizeof(number) > 0x1p24)
#else
#define ARE_MANY(N, n) 0
#endif

typedef number line __attribute__((vector_size(BYTES), may_alias));
typedef line unaligned_line __attribute__((aligned(sizeof(number))));
typedef long long quads __attribute__((vector_size(BYTES), may_alias));

#if defined(__clang__)
#define STREAM(to, from) __builtin_nontemporal_store(from, to)
#elif defined(STORE)
#define STREAM(to, from) STORE((quads *)(to), (quads)(from))
#else
#define STREAM(to, from) (*(to) = (from))
#endif

/* Copies n numbers. */
static inline void stream(ptrdiff_t n, const number *from, number *to) {
    ptrdiff_t k = 0;
    for (; k < n && (uintptr_t)(to + k) % 64; ++k) to[k] = from[k];
    for (; k <= n - LANES; k += LANES) STREAM((line *)(to + k), *(const unaligned_line *)(from + k));
    for (; k < n; ++k) to[k] = from[k];
}

/* What went past the caches is there before this thread says so. */
#define STREAMED() __atomic_thread_fence(__ATOMIC_SEQ_CST)
