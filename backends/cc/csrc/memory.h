// Storage of run-time size, and the records of faults and prints.

//! bytes_of
static inline int64_t bytes_of(int64_t count, int64_t extent)
{
    int64_t bytes;
    if (extent <= 0 || count == 0) return 0;
    return __builtin_mul_overflow(count, extent, &bytes) ? INT64_MAX : bytes;
}

//! compiler_barrier
/* Keep what an iteration of a loop reads and writes apart from other iterations: no vectors are
   made, and no value is kept for later ones. */
static inline void compiler_barrier(void) { __asm__ volatile("" ::: "memory"); }

//! zeroed
static inline void *zeroed(int64_t bytes)
{
    return bytes == INT64_MAX ? NULL : calloc(1, bytes > 0 ? (size_t)bytes : 1);
}

//! aligned
static inline void *aligned(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)bytes) : NULL;
}

//! spacious
#ifdef __linux__
extern int madvise(void *, size_t, int);
#endif

/* Storage of large pages where the system has any: there are fewer to be made when it is used. */
static inline void *spacious(int64_t bytes)
{
    if (bytes < 4194304) return aligned(bytes);
    void *const made = bytes < INT64_MAX / 2 ? aligned_alloc(2097152, (size_t)bytes) : NULL;
#ifdef __linux__
    if (made) madvise(made, (size_t)bytes, 14);
#endif
    return made;
}

//! cleared
static inline void cleared(void *array, int64_t bytes)
{
    if (bytes < INT64_MAX / 2) memset(array, 0, (size_t)bytes);
}

//! grown
static inline void *grown(void *array, int64_t *room, int64_t bytes)
{
    if (array && bytes <= *room) return memset(array, 0, (size_t)bytes);
    free(array);
    array = zeroed(bytes);
    *room = array ? bytes : 0;
    return array;
}

//! record_int
static inline void record_int(int64_t *at, int64_t type, int64_t value)
{
    at[0] = type;
    at[1] = value;
}

//! record_real
static inline void record_real(int64_t *at, int64_t type, double value)
{
    at[0] = type;
    memcpy(at + 1, &value, sizeof value);
}

//! chained
static inline void *chained(void **chain, int64_t bytes)
{
    const int64_t head = 64;
    void **block = zeroed(bytes > INT64_MAX - head ? INT64_MAX : bytes + head);
    if (!block) return NULL;
    block[0] = *chain;
    *chain = block;
    return (char *)block + head;
}

//! unchained
static inline void unchained(void *chain)
{
    while (chain) {
        void *next = *(void **)chain;
        free(chain);
        chain = next;
    }
}
