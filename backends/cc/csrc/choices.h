// Choices without branches: both sides are computed, then one is taken by its bits, so that
// compilers make vectors of the loops around. A piece `straight_NAME` returns what `NAME` does.
// So does `quick_NAME`, for loops that never become vectors: what an iteration waits for takes an
// instruction or two, and a processor guesses right unless there are NaNs now and then.

//! pick_$t: i8 i16 i32 i64 u8 u16 u32 u64
inlined $T pick_$t(bool test, $T yes, $T no)
{
    const $U mask = ($U)-($U)test;
    return ($T)((($U)yes & mask) | (($U)no & ($U)~mask));
}

//! pick_bool
inlined bool pick_bool(bool test, bool yes, bool no) { return (test & yes) | (!test & no); }

//! quick_pick_$t: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool
inlined $T quick_pick_$t(bool test, $T yes, $T no) { return test ? yes : no; }

//! mod_$t: f32 f64
/* In place of that of reals.h, which devices have: whether what remains has the divisor's sign is
   hard to guess. */
inlined $T mod_$t($T a, $T b)
{
    const $T r = fmod_$t(a, b);
    const $T of_sign = pick_$t((r < 0) != (b < 0), r + b, r);
    return pick_$t((r == 0) & (b != 0), copysign$f(0, b), pick_$t(b == 0, r, of_sign));
}

//! straight_max_$t: f32 f64
/* That a number which is known is no NaN takes no test. */
inlined $T straight_max_$t($T a, $T b)
{
    return __builtin_constant_p(b) ? pick_$t((b > a) | (b != b), b, a)
                                   : pick_$t((a >= b) | (a != a), a, b);
}

//! straight_min_$t: f32 f64
inlined $T straight_min_$t($T a, $T b)
{
    return __builtin_constant_p(b) ? pick_$t((b < a) | (b != b), b, a)
                                   : pick_$t((a <= b) | (a != a), a, b);
}

//! quick_max_$t: f32 f64
inlined $T quick_max_$t($T a, $T b)
{
    const $T more = b > a ? b : a;
    return b == b ? more : a != a ? a : b;
}

//! quick_min_$t: f32 f64
inlined $T quick_min_$t($T a, $T b)
{
    const $T less = b < a ? b : a;
    return b == b ? less : a != a ? a : b;
}

//! straight_fmax_$t: f32 f64
inlined $T straight_fmax_$t($T a, $T b) { return pick_$t((a >= b) | (b != b), a, b); }

//! straight_fmin_$t: f32 f64
inlined $T straight_fmin_$t($T a, $T b) { return pick_$t((a <= b) | (b != b), a, b); }

//! straight_sign_$t: f32 f64
inlined $T straight_sign_$t($T x)
{
    return pick_$t(x > 0, 1, pick_$t(x < 0, -1, pick_$t(x == 0, 0, x)));
}

//! straight_relu_$t: f32 f64
inlined $T straight_relu_$t($T x) { return pick_$t(x >= 0, x, 0); }

//! straight_sat01_$t: f32 f64
inlined $T straight_sat01_$t($T x) { return pick_$t(x > 1, 1, pick_$t(x > 0, x, 0)); }

//! straight_relu_gate_$t: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64
inlined $T straight_relu_gate_$t($T gate, $T x) { return pick_$t(gate > 0, x, 0); }

//! straight_sat01_gate_$t: f32 f64
inlined $T straight_sat01_gate_$t($T gate, $T x) { return pick_$t((0 < gate) & (gate < 1), x, 0); }

//! straight_heaviside_$t: f32 f64
inlined $T straight_heaviside_$t($T x, $T at_zero)
{
    return pick_$t(x > 0, 1, pick_$t(x < 0, 0, pick_$t(x == 0, at_zero, x)));
}

//! straight_$t_from_f32: i64 u64
/* Where no vector holds the result, a branch that is always taken takes less time. */
inlined $T straight_$t_from_f32(float x)
{
#if defined __x86_64__ && !defined __AVX512DQ__
    return $t_from_f32(x);
#else
    const bool low = x <= $lf, high = x >= $hf;
    const $T inside = ($T)pick_f32(low | high | !((x > 0) | (x <= -1)), 0, x);
    return pick_$t(low, $L, pick_$t(high, $H, inside));
#endif
}

//! straight_$t_from_f32: i8 i16 u8 u16
/* Between the limits first, which floats hold: so few bits are masks of floats only. */
inlined $T straight_$t_from_f32(float x)
{
    const float below = pick_f32(x < $H, x, $H), both = pick_f32(below > $L, below, $L);
    return ($T)(int32_t)pick_f32((x > 0) | (x <= -1), both, 0);
}

//! straight_$t_from_f32: i32 u32
inlined $T straight_$t_from_f32(float x)
{
    const bool low = x <= $lf, high = x >= $hf;
    const $T inside = ($T)pick_f32(low | high | !((x > 0) | (x <= -1)), 0, x);
    return pick_$t(low, $L, pick_$t(high, $H, inside));
}

//! straight_$t_from_f64: i64 u64
/* Where no vector holds the result, a branch that is always taken takes less time. */
inlined $T straight_$t_from_f64(double x)
{
#if defined __x86_64__ && !defined __AVX512DQ__
    return $t_from_f64(x);
#else
    const bool low = x <= $l, high = x >= $h;
    const $T inside = ($T)pick_f64(low | high | !((x > 0) | (x <= -1)), 0, x);
    return pick_$t(low, $L, pick_$t(high, $H, inside));
#endif
}

//! straight_$t_from_f64: i8 i16 i32 u8 u16
inlined $T straight_$t_from_f64(double x)
{
    const double below = pick_f64(x < $H, x, $H), both = pick_f64(below > $L, below, $L);
    return ($T)(int32_t)pick_f64((x > 0) | (x <= -1), both, 0);
}

//! straight_$t_from_f64: u32
inlined $T straight_$t_from_f64(double x)
{
    const bool low = x <= $l, high = x >= $h;
    const $T inside = ($T)pick_f64(low | high | !((x > 0) | (x <= -1)), 0, x);
    return pick_$t(low, $L, pick_$t(high, $H, inside));
}
