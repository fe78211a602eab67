// The short way of a call: what it was given is compared with what compiled code was made for,
// and the code is run where all of it agrees. All else is left to the long way, which is Python.
//
// A plan is a tuple (words, kept, fail, finish, settle): 64-bit numbers as `call_entry.py` packs
// them, the objects whose addresses are among them, what returns the error that a run ended with,
// None where the long way is to meet it again, None or what makes of the parts what comes back, and
// None or what is called with the values once the code has run.
//
// No headers of Python or NumPy are needed: what is declared here is Python's stable interface,
// and `PyContextVar_Get`, which has not changed. Of objects only the head is read, and the head of
// arrays is as it was in NumPy 1.0; `fast_call.py` looks whether that holds before it is relied on.
// Above stands `results.c`.

typedef struct Object {
    intptr_t references;
    struct Object *type;
} Object;

typedef struct {
    Object head;
    char *data;
    int rank;
    const intptr_t *shape, *strides;
    Object *base, *descr;
    int flags;
} Array;

typedef Object *Make(int rank, const intptr_t *shape, Object *descr, int fortran);

extern Object PyLong_Type, PyFloat_Type, PyList_Type, _Py_NoneStruct;
extern Object *PyExc_Exception, *PyExc_MemoryError;
extern void Py_IncRef(Object *), Py_DecRef(Object *);
extern Object *PyErr_Occurred(void);
extern int PyErr_ExceptionMatches(Object *);
extern void PyErr_Clear(void), PyErr_SetObject(Object *, Object *);
extern Object *PyObject_GetAttr(Object *, Object *), *PyObject_GetItem(Object *, Object *);
extern Object *PyObject_Call(Object *, Object *, Object *);
extern Object *PyObject_CallObject(Object *, Object *);
extern int PyObject_RichCompareBool(Object *, Object *, int);
extern intptr_t PyObject_Size(Object *), PyList_Size(Object *), PyTuple_Size(Object *);
extern Object *PyDict_GetItemWithError(Object *, Object *);
extern Object *PyList_New(intptr_t), *PyList_GetItem(Object *, intptr_t);
extern int PyList_SetItem(Object *, intptr_t, Object *);
extern Object *PyTuple_New(intptr_t), *PyTuple_GetItem(Object *, intptr_t);
extern int PyTuple_SetItem(Object *, intptr_t, Object *);
extern long long PyLong_AsLongLongAndOverflow(Object *, int *);
extern double PyFloat_AsDouble(Object *);
extern Object *PyLong_FromLongLong(long long), *PyFloat_FromDouble(double);
extern Object *PyComplex_FromDoubles(double, double), *PyBool_FromLong(long);
extern char *PyBytes_AsString(Object *);
extern void *PyCapsule_GetPointer(Object *, const char *);
extern Object *PyCapsule_New(void *, const char *, void (*)(Object *));
extern int PyContextVar_Get(Object *, Object *, Object **);
extern void *PyEval_SaveThread(void), PyEval_RestoreThread(void *);
extern Object *PyType_FromSpec(void *), *PyModule_Create2(void *, int);
extern int PyModule_AddObjectRef(Object *, const char *, Object *);
extern void PyObject_GC_Del(void *);

#define VALUES 96
#define ARRAYS 64
#define RESULTS 16
#define RANK 64
#define FAULT 16  // `records.SLOTS`
#define AXES 7    // of results that the code makes, `warm.AXES`
#define SMALL ((int64_t)1 << 12)  // so many bytes of such a result are copied
#define NO_MEMORY 2  // the status of a run that got no memory
#define OWNED 0x0501  // of an array's flags: in C order, aligned, writable

enum { ARGUMENT, KEYWORD, NAME, CELL, ATTRIBUTE, ITEM, CONSTANT, MADE };
enum { ANY, SAME, TYPE, SIZED, EQUAL, ARRAY, FLOAT, INTEGER, NUMBER, BITS, LISTED, SHARED };
enum { NEW_ARRAY, NEW_FLOAT, NEW_INTEGER, NEW_BOOL, NEW_COMPLEX, NEW_NUMBER, NEW_EMPTY,
       NEW_MADE };
enum { OBJECT, VALUE, RESULT, VIEW };
enum { ONE, TUPLE, LIST };

typedef struct {
    int64_t source, where[2], name, check, length, rest[];
} Value;

typedef struct {
    int64_t type, descr, rank, mask, flags, low, high, layout[];
} Layout;

typedef struct {
    int64_t kind, descr, bytes, rank, shape[];
} Result;

typedef struct {
    int64_t settings, positional, named, values, pairs, equals, inputs, results;
    int64_t function, sizes, table, pairs_at, inputs_at, results_at, returned_at, words[];
} Plan;

typedef union {
    double real[2];
    int64_t integer;
    char bytes[16];
} Number;

// What holds for the process, set once.
static struct {
    Object *process, *override, *watching, *array;
    Object *settings, *base, *contents, *plans, *slow;
    Object *handler, *(*set_handler)(Object *);
    Make *zeros, *empty;
    Object *(*around)(
        Object *, Object *, int, const intptr_t *, const intptr_t *, void *, int, Object *);
    int (*set_owner)(Object *, Object *);
    Object *(*scalar)(void *, Object *, Object *);
} known;

// One call while it is looked at and run. What is `owned` is let go at its end.
typedef struct {
    Object *arguments, *named;
    Object *values[VALUES], *results[RESULTS], *owned[VALUES + RESULTS + 8];
    char *low[VALUES], *high[VALUES];
    Number numbers[VALUES], made[RESULTS];
    void *block[ARRAYS + 4];
    int64_t fault[FAULT], made_by_code[RESULTS][1 + AXES];
    int owns;
} Call;

typedef enum { RAISED, MISSED, DONE } Outcome;

static Object *own(Call *call, Object *object)
{
    if (object) call->owned[call->owns++] = object;
    return object;
}

static void let_go(Call *call, int down_to)
{
    while (call->owns > down_to) Py_DecRef(call->owned[--call->owns]);
}

static Object *named(Object *first, Object *second, Object *name)
{
    Object *found = PyDict_GetItemWithError(first, name);
    if (!found && second && !PyErr_Occurred()) found = PyDict_GetItemWithError(second, name);
    if (found) Py_IncRef(found);
    return found;
}

// What a function of NumPy's makes of a value.
static Object *made_of(Object *function, Object *value)
{
    Object *arguments = PyTuple_New(1), *made = NULL;
    if (!arguments) return NULL;
    Py_IncRef(value);  // the tuple takes it over
    if (!PyTuple_SetItem(arguments, 0, value)) made = PyObject_CallObject(function, arguments);
    Py_DecRef(arguments);
    return made;
}

// What a plan names: what an argument, a captured name, an attribute is now; NULL for nothing.
static Object *found(Call *call, const Value *value)
{
    const int64_t *where = value->where;
    Object *name = (Object *)value->name;
    switch (value->source) {
    case ARGUMENT:
        return PyTuple_GetItem(call->arguments, where[0]);
    case KEYWORD:
        return PyDict_GetItemWithError(call->named, name);
    case NAME:
        return own(call, named((Object *)where[0], (Object *)where[1], name));
    case CELL:
        return own(call, PyObject_GetAttr((Object *)where[0], known.contents));
    case ATTRIBUTE:
        return own(call, PyObject_GetAttr(call->values[where[0]], name));
    case ITEM:
        return own(call, PyObject_GetItem(call->values[where[0]], name));
    case MADE:
        return own(call, made_of(name, call->values[where[0]]));
    default:
        return name;
    }
}

// Whether two types of elements are the same: buffers of Python make theirs in each call. They are
// NumPy's, which compares them without any Python code.
static int is_descr(Object *one, Object *other)
{
    if (one == other || one->type != other->type) return one == other;
    const int same = PyObject_RichCompareBool(one, other, 2);  // whether they are equal
    if (same < 0) PyErr_Clear();
    return same == 1;
}

static int is_array(Call *call, int at, const Layout *layout)
{
    const Array *array = (const Array *)call->values[at];
    if (!array || array->head.type != (Object *)layout->type) return 0;
    if (array->rank != layout->rank || !is_descr(array->descr, (Object *)layout->descr)) return 0;
    if ((array->flags & layout->mask) != layout->flags) return 0;
    for (int64_t axis = 0; axis < layout->rank; axis++) {
        if (array->shape[axis] != layout->layout[axis]) return 0;
        if (array->strides[axis] != layout->layout[layout->rank + axis]) return 0;
    }
    call->low[at] = array->data + layout->low;
    call->high[at] = array->data + layout->high;
    return 1;
}

// Whether an object is a list of Python's floats and whole numbers, or of such lists.
static int is_listed(Object *object, int depth)
{
    if (object->type != &PyList_Type || depth > RANK) return 0;
    const intptr_t size = PyList_Size(object);
    for (intptr_t at = 0; at < size; at++) {
        Object *item = PyList_GetItem(object, at);
        if (item->type != &PyFloat_Type && item->type != &PyLong_Type)
            if (!is_listed(item, depth + 1)) return 0;
    }
    return 1;
}

// Whether a value is what the code was made for. No Python code runs here.
static int fits(Call *call, int at, const Value *value)
{
    Object *object = call->values[at], *wanted = (Object *)value->rest[0];
    Number *number = call->numbers + at;
    int overflow = 0;
    if (value->check == SAME) return object == wanted;
    if (!object) return 0;
    switch (value->check) {
    case ANY:
        return 1;
    case TYPE:
        return object->type == wanted;
    case SIZED:
        return object->type == wanted && PyObject_Size(object) == value->rest[1];
    case EQUAL:
        if (object->type != &PyLong_Type) return 0;
        return PyLong_AsLongLongAndOverflow(object, &overflow) == value->rest[0] && !overflow;
    case BITS:  // 0.0 and -0.0 are two
        if (object->type != &PyFloat_Type) return 0;
        number->real[0] = PyFloat_AsDouble(object);
        return !memcmp(number->real, value->rest, sizeof(double));
    case LISTED:
        return is_listed(object, 1);
    case ARRAY:
        return is_array(call, at, (const Layout *)value->rest);
    case SHARED:  // as an array found before, which is compared with a layout later
        wanted = call->values[value->rest[0]];
        if (object->type != known.array || wanted->type != known.array) return 0;
        return ((Array *)object)->data == ((Array *)wanted)->data;
    case FLOAT:
        if (object->type != &PyFloat_Type) return 0;
        number->real[0] = PyFloat_AsDouble(object);
        return 1;
    case INTEGER:
        if (object->type != &PyLong_Type) return 0;
        number->integer = PyLong_AsLongLongAndOverflow(object, &overflow);
        return !overflow;
    default:  // a number of NumPy's, or a complex one: its bytes stand behind the head
        if (object->type != wanted) return 0;
        memcpy(number, object + 1, (size_t)value->rest[1]);
        return 1;
    }
}

static const Value *next(const Value *value)
{
    return (const Value *)((const int64_t *)value + value->length);
}

// Compares all values with the plan. Arrays come last, when no Python code runs any more: what an
// attribute's getter did to them is seen.
static Outcome compared(Call *call, const Plan *plan)
{
    const Value *value = (const Value *)plan->words;
    for (int at = 0; at < plan->values; at++, value = next(value)) {
        call->values[at] = found(call, value);
        if (!call->values[at] && PyErr_Occurred()) return RAISED;
        if (value->check != ARRAY && !fits(call, at, value)) return MISSED;
    }
    value = (const Value *)plan->words;
    for (int at = 0; at < plan->values; at++, value = next(value))
        if (value->check == ARRAY && !fits(call, at, value)) return MISSED;
    const int64_t *pair = (const int64_t *)plan + plan->pairs_at;
    for (int64_t n = 0; n < plan->pairs; n++, pair += 2)
        if (call->low[pair[0]] < call->high[pair[1]] && call->low[pair[1]] < call->high[pair[0]])
            return MISSED;
    for (int64_t n = 0; n < plan->equals; n++, pair += 2) {
        int differ = pair[0] < 0;  // two objects have to be two
        Object *first = call->values[differ ? -1 - pair[0] : pair[0]];
        if ((first == call->values[pair[1]]) == differ) return MISSED;
    }
    return DONE;
}

// Makes an array of anything, which takes the type over; a large one of what `results.c` kept.
static Object *uninitialised(int64_t bytes, int rank, const intptr_t *shape, Object *descr)
{
    if (bytes < (int64_t)LEAST) return known.empty(rank, shape, descr, 0);
    Object *others = known.set_handler(known.handler);
    Object *array = others ? known.empty(rank, shape, descr, 0) : NULL;
    Object *mine = others ? known.set_handler(others) : NULL;
    if (others) Py_DecRef(others);
    if (mine) Py_DecRef(mine);
    return array;
}

// Makes what the code writes its results to; false where there is no memory for it.
static int prepared(Call *call, const Plan *plan)
{
    const int64_t *word = (const int64_t *)plan + plan->results_at;
    for (int at = 0; at < plan->results; at++) {
        const Result *result = (const Result *)word;
        void *data = memset(call->made + at, 0, sizeof(Number));
        if (result->kind == NEW_ARRAY || result->kind == NEW_EMPTY) {
            const int rank = (int)result->rank;
            Object *descr = (Object *)result->descr, *array;
            intptr_t shape[RANK];
            for (int n = 0; n < rank; n++) shape[n] = (intptr_t)result->shape[n];
            Py_IncRef(descr);  // which the array takes over
            array = result->kind == NEW_ARRAY ? known.zeros(rank, shape, descr, 0)
                                              : uninitialised(result->bytes, rank, shape, descr);
            if (!own(call, array)) return 0;
            call->results[at] = array;
            data = ((Array *)array)->data;
        } else if (result->kind == NEW_MADE) {
            data = memset(call->made_by_code[at], 0, sizeof call->made_by_code[at]);
        }
        call->block[plan->inputs + at] = data;
        word += 4 + result->rank;
    }
    return 1;
}

static int run(Call *call, const Plan *plan)
{
    const int64_t *input = (const int64_t *)plan + plan->inputs_at;
    for (int64_t n = 0; n < plan->inputs; n++, input += 2) {
        Array *array = (Array *)call->values[input[0]];
        call->block[n] = input[1] ? array->data : (char *)(call->numbers + input[0]);
    }
    void **last = call->block + plan->inputs + plan->results;
    last[0] = memset(call->fault, 0, sizeof call->fault);
    last[1] = NULL;
    last[2] = (void *)plan->sizes;
    last[3] = (void *)plan->table;
    void *thread = PyEval_SaveThread();
    int status = ((int (*)(void **))plan->function)(call->block);
    PyEval_RestoreThread(thread);
    return status;
}

static void let_go_of_data(Object *owner)
{
    free(PyCapsule_GetPointer(owner, NULL));
}

// Makes an array of what the code made: an address and a shape. The memory is the array's then.
static Object *taken(const Result *result, const int64_t *made)
{
    Object *descr = (Object *)result->descr, *array, *owner = NULL;
    void *data = (void *)(intptr_t)made[0];
    int64_t bytes = data ? result->bytes : 0;
    intptr_t shape[AXES];
    for (int n = 0; n < result->rank; n++) bytes *= shape[n] = (intptr_t)made[1 + n];
    Py_IncRef(descr);  // which the array takes over
    if (bytes <= SMALL) {
        array = known.zeros((int)result->rank, shape, descr, 0);
        if (array && bytes) memcpy(((Array *)array)->data, data, (size_t)bytes);
        free(data);
        return array;
    }
    array = known.around(known.array, descr, (int)result->rank, shape, NULL, data, OWNED, NULL);
    if (array) owner = PyCapsule_New(data, NULL, let_go_of_data);
    if (!owner) free(data);
    if (owner && known.set_owner(array, owner) == 0) return array;  // which takes it over
    if (array) Py_DecRef(array);
    return NULL;
}

// Frees all that the code made, where nobody is to get it.
static void free_made(Call *call, const Plan *plan)
{
    const int64_t *word = (const int64_t *)plan + plan->results_at;
    for (int at = 0; at < plan->results; at++, word += 4 + word[3])
        if (((const Result *)word)->kind == NEW_MADE)
            free((void *)(intptr_t)call->made_by_code[at][0]);
}

// Takes over all that the code made; false where there is no memory for it.
static int all_taken(Call *call, const Plan *plan)
{
    const int64_t *word = (const int64_t *)plan + plan->results_at;
    int is_whole = 1;
    for (int at = 0; at < plan->results; at++, word += 4 + word[3]) {
        const Result *result = (const Result *)word;
        if (result->kind != NEW_MADE) continue;
        call->results[at] = own(call, taken(result, call->made_by_code[at]));
        if (!call->results[at]) {
            call->fault[0] = result->bytes;  // of an element
            for (int n = 0; n < result->rank; n++) call->fault[0] *= call->made_by_code[at][1 + n];
            is_whole = 0;
        }
    }
    return is_whole;
}

static Object *result(Call *call, const Plan *plan, int64_t number)
{
    const int64_t *word = (const int64_t *)plan + plan->results_at;
    for (int64_t n = 0; n < number; n++) word += 4 + word[3];
    const Result *result = (const Result *)word;
    Number *value = call->made + number;
    switch (result->kind) {
    case NEW_ARRAY:
    case NEW_EMPTY:
    case NEW_MADE:
        Py_IncRef(call->results[number]);
        return call->results[number];
    case NEW_FLOAT:
        return PyFloat_FromDouble(value->real[0]);
    case NEW_INTEGER:
        return PyLong_FromLongLong(value->integer);
    case NEW_BOOL:
        return PyBool_FromLong(value->bytes[0] != 0);
    case NEW_COMPLEX:
        return PyComplex_FromDoubles(value->real[0], value->real[1]);
    default:
        return known.scalar(value, (Object *)result->descr, NULL);
    }
}

// A view of a result, or of a value, which has numbers from -1 down: the words are that number,
// bytes to the first element, flags, rank, shape and strides.
static Object *view(Call *call, const int64_t *word)
{
    Object *whole = word[0] < 0 ? call->values[-1 - word[0]] : call->results[word[0]];
    Object *descr = ((Array *)whole)->descr;
    const int rank = (int)word[3];
    const intptr_t *shape = (const intptr_t *)(word + 4);
    Py_IncRef(descr);  // which the array takes over
    Object *seen = known.around(known.array, descr, rank, shape, shape + rank,
                                ((Array *)whole)->data + word[1], (int)word[2], NULL);
    if (!seen) return NULL;
    Py_IncRef(whole);  // which it takes over
    if (known.set_owner(seen, whole) == 0) return seen;
    Py_DecRef(seen);
    return NULL;
}

static Object *part(Call *call, const Plan *plan, const int64_t *word)
{
    if (word[0] == RESULT) return result(call, plan, word[1]);
    const int64_t *first = (const int64_t *)plan + plan->returned_at;
    if (word[0] == VIEW) return view(call, first + word[1]);
    Object *object = word[0] == VALUE ? call->values[word[1]] : (Object *)word[1];
    Py_IncRef(object);
    return object;
}

// What the function returns: one thing, a tuple or list of several, or what is made of these.
static Object *returned(Call *call, const Plan *plan, Object *finish)
{
    const int64_t *word = (const int64_t *)plan + plan->returned_at;
    const int64_t kind = word[0], count = word[1];
    if (kind == ONE) return part(call, plan, word + 2);
    Object *all = kind == TUPLE ? PyTuple_New(count) : PyList_New(count);
    for (int64_t at = 0; all && at < count; at++) {
        Object *one = part(call, plan, word + 2 + 2 * at);
        if (one) {
            (kind == TUPLE ? PyTuple_SetItem : PyList_SetItem)(all, at, one);
            continue;
        }
        Py_DecRef(all);
        all = NULL;
    }
    if (!all || finish == &_Py_NoneStruct) return all;
    Object *finished = PyObject_CallObject(finish, all);
    Py_DecRef(all);
    return finished;
}

// Raises the error that a run ended with, but for what the long way meets again.
static Outcome failed(Call *call, Object *fail, int status)
{
    Object *told = PyTuple_New(1 + FAULT);
    if (!told) return DONE;
    PyTuple_SetItem(told, 0, PyLong_FromLongLong(status));
    for (int at = 0; at < FAULT; at++)
        PyTuple_SetItem(told, 1 + at, PyLong_FromLongLong(call->fault[at]));
    Object *error = PyObject_CallObject(fail, told);
    Py_DecRef(told);
    if (!error) return DONE;
    const Outcome outcome = error == &_Py_NoneStruct ? MISSED : DONE;
    if (outcome == DONE) PyErr_SetObject(error->type, error);
    Py_DecRef(error);
    return outcome;
}

// Has what was written noted, however the run ended; false where that raised.
static int settled(Call *call, const Plan *plan, Object *settle)
{
    if (settle == &_Py_NoneStruct) return 1;
    Object *values = PyTuple_New(plan->values), *done = NULL;
    if (!values) return 0;
    for (int64_t at = 0; at < plan->values; at++) {
        Object *value = call->values[at] ? call->values[at] : &_Py_NoneStruct;
        Py_IncRef(value);  // the tuple takes it over
        PyTuple_SetItem(values, at, value);
    }
    done = PyObject_CallObject(settle, values);
    Py_DecRef(values);
    if (done) Py_DecRef(done);
    return done != NULL;
}

static Outcome tried(Call *call, Object *whole, Object **made)
{
    const Plan *plan = (const Plan *)PyBytes_AsString(PyTuple_GetItem(whole, 0));
    Outcome outcome = compared(call, plan);
    if (outcome != DONE) return outcome;
    if (!prepared(call, plan)) return RAISED;
    int status = run(call, plan);
    if (!settled(call, plan, PyTuple_GetItem(whole, 4))) {  // it has run, once
        if (!status) free_made(call, plan);
        return DONE;
    }
    if (!status && !all_taken(call, plan)) {  // the long way would run it once more
        if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return DONE;
        PyErr_Clear();
        status = NO_MEMORY;
    }
    if (status) return failed(call, PyTuple_GetItem(whole, 2), status);
    *made = returned(call, plan, PyTuple_GetItem(whole, 3));
    return DONE;
}

// The settings that hold now; NULL where only the long way can say, or with an exception.
static Object *settings_now(Call *call)
{
    Object *base = own(call, PyObject_GetAttr(known.process, known.settings)), *over = NULL;
    if (!base || PyContextVar_Get(known.override, &_Py_NoneStruct, &over) < 0) return NULL;
    if (own(call, over) == &_Py_NoneStruct) return base;
    Object *below = own(call, PyObject_GetAttr(over, known.base));
    return below == base ? own(call, PyObject_GetAttr(over, known.settings)) : NULL;
}

// Tries all plans of a function. An exception on the way is no answer: the long way meets it
// again, and says what it means.
static Outcome attempted(Call *call, Object *function, Object **made)
{
    Object *plans = own(call, PyObject_GetAttr(function, known.plans));
    Object *settings = plans && PyList_Size(plans) ? settings_now(call) : NULL;
    if (!settings) return PyErr_Occurred() ? RAISED : MISSED;
    const int64_t positional = PyTuple_Size(call->arguments);
    const int64_t given = call->named ? PyObject_Size(call->named) : 0;
    const int owned = call->owns;
    for (intptr_t at = 0; at < PyList_Size(plans); at++) {
        Object *whole = PyList_GetItem(plans, at);
        const Plan *plan = (const Plan *)PyBytes_AsString(PyTuple_GetItem(whole, 0));
        if ((Object *)plan->settings != settings || plan->positional != positional) continue;
        if (plan->named != given) continue;
        Py_IncRef(whole);
        Outcome outcome = tried(call, whole, made);
        let_go(call, owned);
        Py_DecRef(whole);
        if (outcome != MISSED) return outcome;
    }
    return MISSED;
}

// Calling an object of a class below `Caller`: one of its `plans`, or else its method `slow`.
static Object *called(Object *self, Object *arguments, Object *named)
{
    Call call;
    Object *made = NULL;
    call.arguments = arguments;
    call.named = named;
    call.owns = 0;
    Outcome outcome = MISSED;
    if (!PyList_Size(known.watching)) outcome = attempted(&call, self, &made);
    let_go(&call, 0);
    if (outcome == DONE) return made;
    if (outcome == RAISED) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;  // such as Ctrl-C
        PyErr_Clear();
    }
    Object *slow = PyObject_GetAttr(self, known.slow);
    if (!slow) return NULL;
    made = PyObject_Call(slow, arguments, named);
    Py_DecRef(slow);
    return made;
}

// setup(process, override, watching, type of arrays, NumPy's functions, names): once, at first.
// Whether NumPy's table is what it is taken for.
static Object *setup(Object *self, Object *const *given, intptr_t count)
{
    (void)self, (void)count;
    void **numpy = PyCapsule_GetPointer(given[4], NULL);
    if (!numpy) return NULL;
    for (int at = 0; at < 6; at++) Py_IncRef(given[at]);  // for as long as the process lives
    known.process = given[0];
    known.override = given[1];
    known.watching = given[2];
    known.array = given[3];
    Object **const names[] = {
        &known.settings, &known.base, &known.contents, &known.plans, &known.slow
    };
    for (int at = 0; at < 5; at++) *names[at] = PyTuple_GetItem(given[5], at);
    known.scalar = (Object *(*)(void *, Object *, Object *))numpy[60];
    known.zeros = (Make *)numpy[183];
    known.empty = (Make *)numpy[184];
    known.around = (Object *(*)(Object *, Object *, int, const intptr_t *, const intptr_t *, void *,
                                int, Object *))numpy[94];
    known.set_owner = (int (*)(Object *, Object *))numpy[282];
    known.set_handler = (Object *(*)(Object *))numpy[304];
    known.handler = PyCapsule_New(&handler, "mem_handler", NULL);
    return known.handler ? PyBool_FromLong(numpy[2] == (void *)known.array) : NULL;
}

// empty(shape, type, bytes): what `numpy.empty` returns; a large one of memory that was kept.
static Object *empty(Object *self, Object *const *given, intptr_t count)
{
    (void)self, (void)count;
    intptr_t shape[RANK];
    const int rank = (int)PyTuple_Size(given[0]);
    int overflow;
    for (int n = 0; n < rank && n < RANK; n++)
        shape[n] = (intptr_t)PyLong_AsLongLongAndOverflow(PyTuple_GetItem(given[0], n), &overflow);
    Py_IncRef(given[1]);
    return uninitialised(PyLong_AsLongLongAndOverflow(given[2], &overflow), rank, shape, given[1]);
}

static struct {
    const char *name;
    void *function;
    int flags;
    const char *doc;
} methods[] = {
    {"setup", setup, 0x80, NULL}, {"empty", empty, 0x80, NULL}, {NULL, NULL, 0, NULL}
};

static struct {
    Object head;
    void *init;
    intptr_t index;
    Object *copy;
    const char *name, *doc;
    intptr_t size;
    void *methods, *slots, *traverse, *clear, *free;
} module = {{1 << 30, NULL}, NULL, 0, NULL, "warm", NULL, -1, methods, NULL, NULL, NULL, NULL};

static int traverse(Object *self, int (*visit)(Object *, void *), void *argument)
{
    return visit(self->type, argument);
}

static struct {
    int slot;
    void *function;
} slots[] = {{50, called}, {71, traverse}, {74, PyObject_GC_Del}, {0, NULL}};

static struct {
    const char *name;
    int size, item;
    unsigned flags;
    void *slots;
} caller = {"plusequals.Caller", sizeof(Object), 0, 1u << 18 | 1u << 14 | 1u << 10, slots};

Object *PyInit_warm(void)
{
    Object *made = PyModule_Create2(&module, 3), *type = made ? PyType_FromSpec(&caller) : NULL;
    return type && PyModule_AddObjectRef(made, "Caller", type) == 0 ? made : NULL;
}
