// The record of a print as a line that the device shows, all of it by one call, which nothing
// parts. Floats are told by their bits; the host reads the line, and has every number as it is.

//! logged
static inline void logged(int64_t run, const int64_t *printed)
{
    const long long *v = (const long long *)printed;
    printf("!@#%lld: %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld"
           " %lld\n", (long long)run, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9],
           v[10], v[11], v[12], v[13], v[14], v[15]);
}
