// Accumulating by operations that a device does as one, in any order.

//! atomic_add_$t: f32 f64
static inline void atomic_add_$t($T *at, $T value) { atomicAdd(at, value); }

//! atomic_add_$t: i32 u32
static inline void atomic_add_$t($T *at, $T value) { atomicAdd((unsigned *)at, (unsigned)value); }

//! atomic_add_$t: i64 u64
static inline void atomic_add_$t($T *at, $T value)
{
    atomicAdd((unsigned long long *)at, (unsigned long long)value);
}

//! atomic_max_$t: i32 u32
static inline void atomic_max_$t($T *at, $T value) { atomicMax(at, value); }

//! atomic_max_$t: i64
static inline void atomic_max_$t($T *at, $T value) { atomicMax((long long *)at, (long long)value); }

//! atomic_max_$t: u64
static inline void atomic_max_$t($T *at, $T value)
{
    atomicMax((unsigned long long *)at, (unsigned long long)value);
}

//! atomic_min_$t: i32 u32
static inline void atomic_min_$t($T *at, $T value) { atomicMin(at, value); }

//! atomic_min_$t: i64
static inline void atomic_min_$t($T *at, $T value) { atomicMin((long long *)at, (long long)value); }

//! atomic_min_$t: u64
static inline void atomic_min_$t($T *at, $T value)
{
    atomicMin((unsigned long long *)at, (unsigned long long)value);
}

//! atomic_bitand_$t: i32 u32
static inline void atomic_bitand_$t($T *at, $T value) { atomicAnd(at, value); }

//! atomic_bitand_$t: i64 u64
static inline void atomic_bitand_$t($T *at, $T value)
{
    atomicAnd((unsigned long long *)at, (unsigned long long)value);
}

//! atomic_bitor_$t: i32 u32
static inline void atomic_bitor_$t($T *at, $T value) { atomicOr(at, value); }

//! atomic_bitor_$t: i64 u64
static inline void atomic_bitor_$t($T *at, $T value)
{
    atomicOr((unsigned long long *)at, (unsigned long long)value);
}

//! atomic_bitxor_$t: i32 u32
static inline void atomic_bitxor_$t($T *at, $T value) { atomicXor(at, value); }

//! atomic_bitxor_$t: i64 u64
static inline void atomic_bitxor_$t($T *at, $T value)
{
    atomicXor((unsigned long long *)at, (unsigned long long)value);
}
