// Memory of results, from the pool. NumPy gets it and gives it back through a handler (its
// enhancement proposal 49), so that results own their memory, as other arrays do.

#define MOST ((size_t)256 << 20)  // so much is kept for later, of so many results

static void *take(void *context, size_t size)
{
    (void)context;
    Block *block = block_of(size);
    return block ? block + 1 : NULL;
}

static void *take_zeros(void *context, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *data = take(context, bytes);
    return data ? memset(data, 0, bytes) : NULL;
}

static void give_back(void *context, void *data, size_t size)
{
    (void)context, (void)size;
    if (data) keep_block((Block *)data - 1, MOST);
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
