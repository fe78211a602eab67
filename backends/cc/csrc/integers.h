// Integer operations as NumPy defines them: nothing traps, everything wraps to its own width.
// Pieces start at `//!`: the names they define, then the types they exist for. In a piece $t is
// the type's short name, $T its C type, $U the unsigned type of its width, $b its bits, $L and $H
// its limits, $R and $r the C type and short name of a complex type's parts, $f the suffix of
// the C library's functions. Signed overflow relies on -fwrapv.

//! floordiv_$t: i8 i16 i32 i64
static inline $T floordiv_$t($T a, $T b)
{
    if (b == 0) return 0;
    if (b == -1) return ($T)-a;
    const $T r = ($T)(a % b);
    return ($T)(a / b - ((r != 0) & ((r ^ b) < 0)));
}

//! floordiv_$t: u8 u16 u32 u64
static inline $T floordiv_$t($T a, $T b) { return b == 0 ? 0 : ($T)(a / b); }

//! mod_$t: i8 i16 i32 i64
static inline $T mod_$t($T a, $T b)
{
    if (b == 0 || b == -1) return 0;
    const $T r = ($T)(a % b);
    return ($T)(r + (b & -(($T)((r != 0) & ((r ^ b) < 0)))));
}

//! fmod_$t: i8 i16 i32 i64
static inline $T fmod_$t($T a, $T b) { return b == 0 || b == -1 ? 0 : ($T)(a % b); }

//! mod_$t: u8 u16 u32 u64
static inline $T mod_$t($T a, $T b) { return b == 0 ? 0 : ($T)(a % b); }

//! fmod_$t: u8 u16 u32 u64
static inline $T fmod_$t($T a, $T b) { return b == 0 ? 0 : ($T)(a % b); }

//! pow_$t: i8 i16 i32 i64
static inline $T pow_$t($T a, $T b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    $U result = 1, factor = ($U)a;
    for (; b > 0; b >>= 1) {
        result = ($U)(result * ((factor & -($U)(b & 1)) | ($U)(~b & 1))); // no branch to guess
        factor = ($U)(factor * factor);
    }
    return ($T)result;
}

//! pow_$t: u8 u16 u32 u64
static inline $T pow_$t($T a, $T b)
{
    $T result = 1;
    for (; b > 0; b >>= 1) {
        result = ($T)(result * ((a & -($T)(b & 1)) | ($T)(~b & 1)));
        a = ($T)(a * a);
    }
    return result;
}

//! shl_$t: i8 i16 u8 u16
/* By 32 bits, as compilers know no vectors whose narrow lanes are shifted by different numbers. */
static inline $T shl_$t($T a, $T b)
{
    const uint32_t by = ($U)b, all = -(uint32_t)(by < $b);
    return ($T)(((uint32_t)a << (by & 31)) & all);
}

//! shl_$t: i32 i64 u32 u64
static inline $T shl_$t($T a, $T b)
{
    const $U all = -($U)(($U)b < $b);
    return ($T)((($U)a << (b & ($b - 1))) & all);
}

//! shr_$t: i8 i16
static inline $T shr_$t($T a, $T b)
{
    const uint32_t by = ($U)b;
    return ($T)((int32_t)a >> (by < 31 ? by : 31));
}

//! shr_$t: i32 i64
static inline $T shr_$t($T a, $T b) { return ($T)(a >> (($U)b < $b ? b : $b - 1)); }

//! shr_$t: u8 u16
static inline $T shr_$t($T a, $T b)
{
    if (__builtin_constant_p(b)) return b < $b ? ($T)(a >> b) : 0;
    const uint32_t by = b; /* from above, lest compilers shift by as few bits as there are */
    return ($T)(((uint32_t)a << 16 >> (by < 31 ? by : 31)) >> 16);
}

//! shr_$t: u32 u64
static inline $T shr_$t($T a, $T b)
{
    const $T all = -($T)(b < $b);
    return ($T)((a >> (b & ($b - 1))) & all);
}

//! max_$t: i8 i16 i32 i64 u8 u16 u32 u64
static inline $T max_$t($T a, $T b) { return a >= b ? a : b; }

//! min_$t: i8 i16 i32 i64 u8 u16 u32 u64
static inline $T min_$t($T a, $T b) { return a <= b ? a : b; }

//! abs_$t: i8 i16 i32 i64
static inline $T abs_$t($T a) { return ($T)((a ^ (a >> ($b - 1))) - (a >> ($b - 1))); }

//! trip_count
static inline int64_t trip_count(int64_t low, int64_t high, int64_t step)
{
    return low < high ? (int64_t)(((uint64_t)high - (uint64_t)low - 1) / (uint64_t)step + 1) : 0;
}

//! abs_$t: u8 u16 u32 u64
static inline $T abs_$t($T a) { return a; }

//! sign_$t: i8 i16 i32 i64
static inline $T sign_$t($T a) { return ($T)((a > 0) - (a < 0)); }

//! sign_$t: u8 u16 u32 u64
static inline $T sign_$t($T a) { return a > 0; }

//! relu_$t: i8 i16 i32 i64 u8 u16 u32 u64
static inline $T relu_$t($T a) { return a > 0 ? a : 0; }

//! relu_gate_$t: i8 i16 i32 i64 u8 u16 u32 u64
static inline $T relu_gate_$t($T gate, $T a) { return gate > 0 ? a : 0; }

//! max_bool
static inline bool max_bool(bool a, bool b) { return a || b; }

//! min_bool
static inline bool min_bool(bool a, bool b) { return a && b; }

//! invert_bool
static inline bool invert_bool(bool a) { return !a; }

//! ordinal_$t: i8 i16 i32 i64
static inline $U ordinal_$t($T a) { return ($U)(($U)a ^ ($U)1 << ($b - 1)); }

//! ordinal_$t: u8 u16 u32 u64
static inline $U ordinal_$t($T a) { return a; }
