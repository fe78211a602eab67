// Integer operations whose C relies on -fwrapv: a CUDA compiler takes signed overflow for
// impossible. These compute on the unsigned type of the same width.

//! add_$t: i8 i16 i32 i64
static inline $T add_$t($T a, $T b) { return ($T)(($U)a + ($U)b); }

//! sub_$t: i8 i16 i32 i64
static inline $T sub_$t($T a, $T b) { return ($T)(($U)a - ($U)b); }

//! mul_$t: i8 i16
static inline $T mul_$t($T a, $T b) { return ($T)(a * b); }

//! mul_$t: i32 i64
static inline $T mul_$t($T a, $T b) { return ($T)(($U)a * ($U)b); }

//! neg_$t: i8 i16 i32 i64
static inline $T neg_$t($T a) { return ($T)(0 - ($U)a); }

//! abs_$t: i8 i16 i32 i64
static inline $T abs_$t($T a) { return a < 0 ? neg_$t(a) : a; }

//! floordiv_$t: i8 i16 i32 i64
static inline $T floordiv_$t($T a, $T b)
{
    if (b == 0) return 0;
    if (b == -1) return neg_$t(a);
    return ($T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

//! shr_$t: u8 u16
/* In place of that of C, which asks its compiler what it knows. */
static inline $T shr_$t($T a, $T b) { return b < $b ? ($T)(a >> b) : 0; }

//! pow_$t: i8 i16 i32 i64
static inline $T pow_$t($T a, $T b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t result = 1, factor = (uint64_t)a;
    for (; b > 0; b >>= 1) {
        if (b & 1) result *= factor;
        factor *= factor;
    }
    return ($T)result;
}

//! pow_$t: u8 u16 u32 u64
static inline $T pow_$t($T a, $T b)
{
    uint64_t result = 1, factor = a;
    for (; b > 0; b >>= 1) {
        if (b & 1) result *= factor;
        factor *= factor;
    }
    return ($T)result;
}
