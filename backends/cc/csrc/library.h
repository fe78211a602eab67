// What the C library has, declared where it is called: reading its headers takes as long as
// compiling a small function does.

//! floor$f: f32 f64
$T floor$f($T x);

//! ceil$f: f32 f64
$T ceil$f($T x);

//! trunc$f: f32 f64
$T trunc$f($T x);

//! rint$f: f32 f64
$T rint$f($T x);

//! fabs$f: f32 f64
$T fabs$f($T x);

//! sqrt$f: f32 f64
$T sqrt$f($T x);

//! fma$f: f32 f64
$T fma$f($T x, $T y, $T z);

//! fmod$f: f32 f64
$T fmod$f($T x, $T y);

//! hypot$f: f32 f64
$T hypot$f($T x, $T y);

//! atan2$f: f32 f64
$T atan2$f($T y, $T x);

//! copysign$f: f32 f64
$T copysign$f($T x, $T y);

//! isnan
#define isnan(x) __builtin_isnan(x)

//! isinf
#define isinf(x) __builtin_isinf(x)

//! isfinite
#define isfinite(x) __builtin_isfinite(x)

//! signbit
#define signbit(x) __builtin_signbit(x)

//! INFINITY
#define INFINITY __builtin_inff()

//! NAN
#define NAN __builtin_nanf("")

//! calloc
void *calloc(size_t count, size_t size);

//! aligned_alloc
void *aligned_alloc(size_t alignment, size_t size);

//! free
void free(void *array);

//! memcpy
void *memcpy(void *restrict to, const void *restrict from, size_t size);

//! memset
void *memset(void *array, int value, size_t size);
