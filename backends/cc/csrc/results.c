// Memory of results. What a result had is kept for those to come: taking pages of the system anew
// in every call costs more than filling them. NumPy gets it and gives it back through a handler
// (its enhancement proposal 49), so that results own their memory, as other arrays do.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LEAST ((size_t)1 << 16)  // below, the C library keeps what it has by itself
#define MOST ((size_t)256 << 20)  // so much is kept for later, of so many results
#define BLOCKS 16
#define PATIENCE 64  // what nobody wanted when so many others were taken is let go
#define PAGE ((size_t)2 << 20)  // a large one

typedef struct {
    size_t room;  // behind this head
    char apart[56];
} Block;

static struct {
    Block *blocks[BLOCKS];
    uint64_t since[BLOCKS];
    uint64_t turn;
    size_t total;
    char lock;
} pool;

static void pool_lock(void)
{
    while (__atomic_test_and_set(&pool.lock, __ATOMIC_ACQUIRE)) continue;
}

static void pool_unlock(void)
{
    __atomic_clear(&pool.lock, __ATOMIC_RELEASE);
}

static Block *pool_taken(int at)
{
    Block *block = pool.blocks[at];
    pool.blocks[at] = NULL;
    pool.total -= block->room;
    return block;
}

#ifdef __linux__
extern int madvise(void *, size_t, int);
#endif

static Block *new_block(size_t size)
{
    if (size > PTRDIFF_MAX - 2 * PAGE) return NULL;
    const size_t room = (size + 63) & ~(size_t)63;
    const size_t apart = room < 2 * PAGE ? sizeof(Block) : PAGE;
    const size_t whole = (room + sizeof(Block) + apart - 1) & ~(apart - 1);
    Block *block = aligned_alloc(apart, whole);
#ifdef __linux__
    if (block && apart == PAGE) madvise(block, whole, 14);  // in large pages, where there are any
#endif
    if (block) block->room = room;
    return block;
}

// The smallest block that has the room and wastes little of it, else a new one.
static void *take(void *context, size_t size)
{
    (void)context;
    int best = -1;
    pool_lock();
    pool.turn++;
    for (int at = 0; at < BLOCKS; at++) {
        const size_t room = pool.blocks[at] ? pool.blocks[at]->room : 0;
        if (room < size || room - size > size / 4) continue;
        if (best < 0 || room < pool.blocks[best]->room) best = at;
    }
    Block *block = best < 0 ? NULL : pool_taken(best);
    for (int at = 0; at < BLOCKS; at++)
        if (pool.blocks[at] && pool.turn - pool.since[at] > PATIENCE) free(pool_taken(at));
    pool_unlock();
    if (!block) block = new_block(size);
    return block ? block + 1 : NULL;
}

static void *take_zeros(void *context, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *data = take(context, bytes);
    return data ? memset(data, 0, bytes) : NULL;
}

// Keeps a block, in place of the oldest ones where there are too many.
static void give_back(void *context, void *data, size_t size)
{
    (void)context, (void)size;
    if (!data) return;
    Block *block = (Block *)data - 1;
    if (block->room < LEAST || block->room > MOST) {
        free(block);
        return;
    }
    pool_lock();
    for (;;) {
        int empty = -1, oldest = -1;
        for (int at = 0; at < BLOCKS; at++) {
            if (!pool.blocks[at]) empty = at;
            else if (oldest < 0 || pool.since[at] < pool.since[oldest]) oldest = at;
        }
        if (empty >= 0 && pool.total + block->room <= MOST) {
            pool.blocks[empty] = block;
            pool.since[empty] = pool.turn;
            pool.total += block->room;
            break;
        }
        free(pool_taken(oldest));
    }
    pool_unlock();
}

static void *resize(void *context, void *data, size_t size)
{
    const size_t room = data ? ((Block *)data - 1)->room : 0;
    if (data && size <= room) return data;
    void *made = take(context, size);
    if (made && data) {
        memcpy(made, data, room);
        give_back(context, data, room);
    }
    return made;
}

static struct {
    char name[127];
    uint8_t version;
    void *context;
    void *(*take)(void *, size_t);
    void *(*take_zeros)(void *, size_t, size_t);
    void *(*resize)(void *, void *, size_t);
    void (*give_back)(void *, void *, size_t);
} handler = {"plusequals", 1, NULL, take, take_zeros, resize, give_back};
