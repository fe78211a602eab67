// Memory that is kept for later calls: taking pages of the system anew in every one costs more than
// filling them. Each library that has this text has a pool of its own. Nobody waits for it: while
// another thread is inside, or was when its process forked, what is taken is new.

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
    char padding[56];
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

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define MAPS 1
extern void *mmap(void *, size_t, int, int, int, long);
extern int munmap(void *, size_t);
extern int madvise(void *, size_t, int);

static size_t mapped(size_t room)
{
    return (room + sizeof(Block) + 65535) & ~(size_t)65535;  // in whole pages of any size
}

// A block of large pages, where there are any, which goes back to the system when it is freed.
static Block *new_map(size_t room)
{
    const size_t whole = mapped(room);
    char *const made = mmap(NULL, whole + PAGE, 3, 0x22, -1, 0);  // read, write; private, no file
    if (made == (char *)-1) return NULL;
    const size_t before = -(uintptr_t)made & (PAGE - 1);
    if (before) munmap(made, before);
    if (before < PAGE) munmap(made + before + whole, PAGE - before);
    madvise(made + before, whole, 14);
    return (Block *)(made + before);
}
#endif

static Block *new_block(size_t size)
{
    if (size > PTRDIFF_MAX - 2 * PAGE) return NULL;
    const size_t room = (size + 63) & ~(size_t)63;
    Block *block;
#ifdef MAPS
    block = room < 2 * PAGE ? aligned_alloc(64, room + sizeof(Block)) : new_map(room);
#else
    block = aligned_alloc(64, room + sizeof(Block));
#endif
    if (block) block->room = room;
    return block;
}

static void end_block(Block *block)
{
#ifdef MAPS
    if (block->room >= 2 * PAGE) {
        munmap(block, mapped(block->room));
        return;
    }
#endif
    free(block);
}

// Gives all that is kept back to the system.
static void empty_pool(void)
{
    if (!pool_entered()) return;
    for (int at = 0; at < BLOCKS; at++)
        if (pool.blocks[at]) end_block(pool_taken(at));
    pool_left();
}

// The smallest kept block that has the room and wastes little of it; NULL for none.
static Block *kept_block(size_t size)
{
    int best = -1;
    if (size < LEAST || !pool_entered()) return NULL;
    pool.turn++;
    for (int at = 0; at < BLOCKS; at++) {
        const size_t room = pool.blocks[at] ? pool.blocks[at]->room : 0;
        if (room < size || room - size > size / 4) continue;
        if (best < 0 || room < pool.blocks[best]->room) best = at;
    }
    Block *block = best < 0 ? NULL : pool_taken(best);
    for (int at = 0; at < BLOCKS; at++)
        if (pool.blocks[at] && pool.turn - pool.since[at] > PATIENCE) end_block(pool_taken(at));
    pool_left();
    return block;
}

// A block that has the room; NULL where there is no memory.
static Block *block_of(size_t size)
{
    Block *block = kept_block(size);
    if (!block) block = new_block(size);
    if (block) return block;
    empty_pool();
    return new_block(size);
}

// Keeps a block, in place of the oldest ones where that would be more than so many bytes in all.
static void keep_block(Block *block, size_t most)
{
    if (block->room < LEAST || block->room > most || !pool_entered()) {
        end_block(block);
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
        end_block(pool_taken(oldest));
    }
    pool_left();
}
