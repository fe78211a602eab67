// Memory that is kept for later calls: taking pages of the system anew in every one costs more than
// filling them. Each library that has this text has a pool of its own. Nobody waits for it: while
// another thread is inside, or was when its process forked, memory is the C library's.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LEAST ((size_t)1 << 16)  // below, the C library keeps what it has by itself
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

static int pool_entered(void)
{
    return !__atomic_test_and_set(&pool.lock, __ATOMIC_ACQUIRE);
}

static void pool_left(void)
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
    const size_t whole = room + sizeof(Block);
#ifdef __linux__
    Block *block = aligned_alloc(apart, whole);  // the end is no whole large page, and takes none
    if (block && apart == PAGE) madvise(block, whole, 14);
#else
    Block *block = aligned_alloc(apart, (whole + apart - 1) & ~(apart - 1));
#endif
    if (block) block->room = room;
    return block;
}

// The smallest block that has the room and wastes little of it, else a new one; NULL for none.
static Block *block_of(size_t size)
{
    int best = -1;
    if (!pool_entered()) return new_block(size);
    pool.turn++;
    for (int at = 0; at < BLOCKS; at++) {
        const size_t room = pool.blocks[at] ? pool.blocks[at]->room : 0;
        if (room < size || room - size > size / 4) continue;
        if (best < 0 || room < pool.blocks[best]->room) best = at;
    }
    Block *block = best < 0 ? NULL : pool_taken(best);
    for (int at = 0; at < BLOCKS; at++)
        if (pool.blocks[at] && pool.turn - pool.since[at] > PATIENCE) free(pool_taken(at));
    pool_left();
    return block ? block : new_block(size);
}

// Keeps a block, in place of the oldest ones where that would be more than so many bytes in all.
static void keep_block(Block *block, size_t most)
{
    if (block->room < LEAST || block->room > most || !pool_entered()) {
        free(block);
        return;
    }
    for (;;) {
        int empty = -1, oldest = -1;
        for (int at = 0; at < BLOCKS; at++) {
            if (!pool.blocks[at]) empty = at;
            else if (oldest < 0 || pool.since[at] < pool.since[oldest]) oldest = at;
        }
        if (empty >= 0 && pool.total + block->room <= most) {
            pool.blocks[empty] = block;
            pool.since[empty] = pool.turn;
            pool.total += block->room;
            break;
        }
        free(pool_taken(oldest));
    }
    pool_left();
}
