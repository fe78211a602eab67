// The threads of `fibres.h`: their turns, their barriers, and the launch of a kernel.

#include "fibres.h"
#include <setjmp.h>
#include <ucontext.h>

#pragma GCC visibility push(hidden)
extern "C" char __start_pe_shared[] __attribute__((weak));
extern "C" char __stop_pe_shared[] __attribute__((weak));
#pragma GCC visibility pop

Place threadIdx, blockIdx, blockDim, gridDim;
unsigned char pe_block_bytes[MOST_BYTES + BEHIND] __align__(128);

/* An odd number of lines of the cache: were it a power of two, all stacks would share a few. */
enum { MOST_THREADS = 1024, STACK = 1029 * 64 };
typedef void (*Kernel)(...);
typedef int64_t N;
#define EIGHT(each, at) each(at) each(at + 1) each(at + 2) each(at + 3) each(at + 4) \
    each(at + 5) each(at + 6) each(at + 7)
#define ALL(each) EIGHT(each, 0) EIGHT(each, 8) EIGHT(each, 16) EIGHT(each, 24) EIGHT(each, 32) \
    EIGHT(each, 40) EIGHT(each, 48) EIGHT(each, 56) EIGHT(each, 64) EIGHT(each, 72) \
    EIGHT(each, 80) EIGHT(each, 88)
#define A_TYPE(at) N,
#define A_VALUE(at) given[at],
typedef void (*Taking)(ALL(A_TYPE) N);
enum { MOST_ARGUMENTS = 96 };

/* A jump costs no call of the system, which a switch of contexts does: that only begins a fibre,
 * which goes from a thread of one block to that of the next. */
static jmp_buf scheduler, fibres[MOST_THREADS];
static bool begun[MOST_THREADS];
static char *stacks;
__attribute__((destructor)) static void unloaded() { free(stacks); }
static State states[MOST_THREADS];
static int lines[MOST_THREADS];
static int current;
static Taking kernel;
static const N *given;
static char message[200];
static uint64_t random_state;
static int64_t overflows;
static int64_t block_bytes_given;

static unsigned drawn(unsigned below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 32) * below >> 32);
}

static void shuffled(int *order, int count)
{
    for (int k = 0; k < count; k++) order[k] = k;
    if (!random_state) return;
    for (int k = count - 1; k > 0; k--) {
        const int other = (int)drawn((unsigned)k + 1), held = order[k];
        order[k] = order[other];
        order[other] = held;
    }
}

void wait_at(int line, State state)
{
    lines[current] = line;
    states[current] = state;
    if (!_setjmp(fibres[current])) _longjmp(scheduler, 1);
}

/* What one thread of a block says to all of them, at a barrier. */
static int said_by[MOST_THREADS];
int any_said(int line, int mine)
{
    said_by[current] = mine;
    wait_at(line, AT_BARRIER);
    int any = 0;
    for (unsigned t = 0; t < blockDim.x * blockDim.y * blockDim.z; t++) any |= said_by[t];
    wait_at(line, AT_BARRIER);
    return any;
}

/* What each thread of a warp has is what all of them get: every exchange of a warp is this one. */
enum { WARP = 32, MOST_HELD = 64 };
static char held_by[MOST_THREADS][MOST_HELD];
void pe_exchanged(const void *mine, int size, void *all)
{
    const int first = current / WARP * WARP;
    memcpy(held_by[current], mine, size);
    wait_at(__LINE__, AT_EXCHANGE);
    for (int lane = 0; lane < WARP; lane++)
        memcpy((char *)all + lane * size, held_by[first + lane], size);
    wait_at(__LINE__, AT_EXCHANGE);
}

/* Copies that are there behind a pe_arrived, and not before: all but those since the last `later`
 * calls of it. */
enum { MOST_COPIES = 64 };
struct Copy { void *to; const void *from; int size, group; };
static Copy copies[MOST_THREADS][MOST_COPIES];
static int copies_of[MOST_THREADS], groups_of[MOST_THREADS];
void pe_copied_later(void *to, const void *from, int size)
{
    if (copies_of[current] == MOST_COPIES) abort();
    copies[current][copies_of[current]++] = Copy{to, from, size, groups_of[current]};
}
void pe_arrived(int later)
{
    const int last = groups_of[current]++ - later;
    int left = 0;
    for (int k = 0; k < copies_of[current]; k++) {
        const Copy copy = copies[current][k];
        if (copy.group <= last) memcpy(copy.to, copy.from, copy.size);
        else copies[current][left++] = copy;
    }
    copies_of[current] = left;
}

/* Notes what a device would fail of: an instruction for so many bytes at no multiple of them. */
static const char *misplaced;
void pe_aligned(const void *place, int bytes)
{
    if ((uintptr_t)place % bytes) misplaced = "an instruction moves bytes that begin at an odd place";
}

/* Called where -fsanitize=signed-integer-overflow sees one. */
extern "C" void __ubsan_handle_add_overflow(void *, void *, void *) { overflows++; }
extern "C" void __ubsan_handle_sub_overflow(void *, void *, void *) { overflows++; }
extern "C" void __ubsan_handle_mul_overflow(void *, void *, void *) { overflows++; }
extern "C" void __ubsan_handle_negate_overflow(void *, void *) { overflows++; }
extern "C" void __ubsan_handle_divrem_overflow(void *, void *, void *) { overflows++; }

/* Lets the threads of a warp go on that have all come to the same exchange; whether there are any. */
static bool exchanged(int threads)
{
    bool found = false;
    for (int first = 0; first < threads; first += WARP) {
        bool all = true;
        const int end = first + WARP < threads ? first + WARP : threads;
        for (int t = first; t < end; t++)
            all = all && states[t] == AT_EXCHANGE && lines[t] == lines[first];
        for (int t = first; all && t < end; t++) states[t] = READY;
        found = found || all;
    }
    return found;
}

/* Lets threads that have come to the same barrier go on; whether they may. */
static bool met(int threads, int left)
{
    int line = 0;
    for (int t = 0; t < threads; t++) {
        if (states[t] == ENDED) continue;
        if (states[t] == AT_EXCHANGE) {
            snprintf(message, sizeof message, "not all threads of a warp come to an exchange");
            return false;
        }
        if (line && lines[t] != line) {
            snprintf(message, sizeof message, "threads of a block are at barriers of the lines "
                     "%d and %d", line, lines[t]);
            return false;
        }
        line = lines[t];
        states[t] = READY;
    }
    if (line && left < threads && !*(const N *)given[MOST_ARGUMENTS]) {
        snprintf(message, sizeof message, "%d of %d threads do not come to the barrier of line"
                 " %d", threads - left, threads, line);
        return false;
    }
    return true;
}

static void run_kernels()
{
    for (;;) {
        kernel(ALL(A_VALUE) 0);
        wait_at(0, ENDED);
    }
}

static void begin_fibre(int t)
{
    static ucontext_t first;
    begun[t] = true;
    getcontext(&first);
    first.uc_stack.ss_sp = stacks + (size_t)t * STACK;
    first.uc_stack.ss_size = STACK;
    makecontext(&first, run_kernels, 0);
    setcontext(&first);
}

static void run_thread(int t)
{
    current = t;
    threadIdx = Place{t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    if (_setjmp(scheduler)) return;
    if (begun[t]) _longjmp(fibres[t], 1);
    begin_fibre(t);
}

static bool run_block(int threads)
{
    static int order[MOST_THREADS];
    if (__start_pe_shared) memset(__start_pe_shared, 0xff, __stop_pe_shared - __start_pe_shared);
    if (block_bytes_given) memset(pe_block_bytes, 0xff, block_bytes_given);
    for (int t = 0; t < threads; t++) {
        states[t] = READY;
        copies_of[t] = 0;
    }
    for (int left = threads; left > 0;) {
        shuffled(order, threads);
        for (int k = 0; k < threads; k++) {
            const int t = order[k];
            if (states[t] != READY) continue;
            run_thread(t);
            if (states[t] == ENDED) left--;
        }
        if (!exchanged(threads) && !met(threads, left)) return false;
    }
    return true;
}

/* Whether nothing was written behind the bytes that a launch gives to a block. */
static bool kept_behind()
{
    const unsigned char *behind = pe_block_bytes + block_bytes_given;
    return *behind == 0xa5 && !memcmp(behind, behind + 1, BEHIND - 1);
}

/* Runs a kernel; `shape` is the grid, then the block, then the bytes that each block is given; behind
 * the arguments is where faults go. */
extern "C" const char *pe_launch(Kernel function, const N *shape, const N *arguments, uint64_t seed)
{
    static int order[1 << 20];
    if (!stacks) stacks = (char *)malloc((size_t)MOST_THREADS * STACK);
    kernel = (Taking)function;
    given = arguments;
    random_state = seed;
    gridDim = Place{(unsigned)shape[0], (unsigned)shape[1], (unsigned)shape[2]};
    blockDim = Place{(unsigned)shape[3], (unsigned)shape[4], (unsigned)shape[5]};
    const int blocks = (int)(shape[0] * shape[1] * shape[2]);
    const int threads = (int)(shape[3] * shape[4] * shape[5]);
    if (blocks > 1 << 20 || threads > MOST_THREADS || threads < 1) return "a launch out of bounds";
    misplaced = 0;
    block_bytes_given = shape[6];
    if (block_bytes_given > MOST_BYTES) return "more bytes for a block than there are";
    memset(pe_block_bytes + block_bytes_given, 0xa5, BEHIND);
    shuffled(order, blocks);
    for (int k = 0; k < blocks; k++) {
        const unsigned b = (unsigned)order[k];
        blockIdx = Place{b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
        if (!run_block(threads)) {
            memset(begun, 0, sizeof begun); // what waits is never gone on with
            return message;
        }
        if (misplaced) return misplaced;
        if (!kept_behind()) return "it writes behind the bytes that a launch gives to a block";
    }
    return 0;
}

extern "C" int64_t pe_overflows() { return overflows; }
