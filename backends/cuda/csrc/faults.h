// The record of a failed check, which many threads may want to write: the first in the order of
// the program does. `faults` holds the number of the launch that failed, a lock, its place in the
// program, and the record; behind it is room for the records of others. Threads of a warp take
// turns: one that has the lock may be made to wait for those that it goes on with, and they for it.

//! claimed
static inline int64_t *claimed(int64_t *faults, int64_t launch, const int64_t *place, int length)
{
    const int places = 8, slots = 16;
    volatile int64_t *held = faults;
    while (atomicCAS((unsigned long long *)(faults + 1), 0ull, 1ull) != 0ull) {}
    __threadfence();
    bool first = held[0] == 0;
    for (int k = 0; !first && k < length && k < places; k++) {
        if (place[k] > held[2 + k]) break;
        first = place[k] < held[2 + k];
    }
    if (first) {
        held[0] = launch;
        for (int k = 0; k < places; k++) held[2 + k] = k < length ? place[k] : 0;
    }
    return faults + 2 + places + (first ? 0 : slots);
}

//! released
static inline void released(int64_t *faults)
{
    __threadfence();
    atomicExch((unsigned long long *)(faults + 1), 0ull);
}
