// Choices without branches, in the place of those that other languages take: both sides are
// computed, then one is taken by its bits, so that compilers make vectors of the loops around.

//! pick_$t: i8 i16 i32 i64 u8 u16 u32 u64
inlined $T pick_$t(bool test, $T yes, $T no)
{
    const $U mask = ($U)-($U)test;
    return ($T)((($U)yes & mask) | (($U)no & ($U)~mask));
}

//! pick_bool
inlined bool pick_bool(bool test, bool yes, bool no) { return (test & yes) | (!test & no); }

//! max_$t: f32 f64
inlined $T max_$t($T a, $T b) { return pick_$t((a >= b) | (a != a), a, b); }

//! min_$t: f32 f64
inlined $T min_$t($T a, $T b) { return pick_$t((a <= b) | (a != a), a, b); }

//! fmax_$t: f32 f64
inlined $T fmax_$t($T a, $T b) { return pick_$t((a >= b) | (b != b), a, b); }

//! fmin_$t: f32 f64
inlined $T fmin_$t($T a, $T b) { return pick_$t((a <= b) | (b != b), a, b); }

//! larger_$t: f32 f64
/* max with a branch, for what is accumulated in a variable: there the next step waits for it. */
inlined $T larger_$t($T a, $T b) { return a >= b || a != a ? a : b; }

//! smaller_$t: f32 f64
/* min with a branch. */
inlined $T smaller_$t($T a, $T b) { return a <= b || a != a ? a : b; }

//! sign_$t: f32 f64
inlined $T sign_$t($T x)
{
    return pick_$t(x > 0, 1, pick_$t(x < 0, -1, pick_$t(x == 0, 0, x)));
}

//! relu_$t: f32 f64
inlined $T relu_$t($T x) { return pick_$t(x >= 0, x, 0); }

//! sat01_$t: f32 f64
inlined $T sat01_$t($T x) { return pick_$t(x > 1, 1, pick_$t(x > 0, x, 0)); }

//! relu_gate_$t: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64
inlined $T relu_gate_$t($T gate, $T x) { return pick_$t(gate > 0, x, 0); }

//! sat01_gate_$t: f32 f64
inlined $T sat01_gate_$t($T gate, $T x) { return pick_$t((0 < gate) & (gate < 1), x, 0); }

//! heaviside_$t: f32 f64
inlined $T heaviside_$t($T x, $T at_zero)
{
    return pick_$t(x > 0, 1, pick_$t(x < 0, 0, pick_$t(x == 0, at_zero, x)));
}

//! $t_from_f32: i8 i16 i32 i64 u8 u16 u32 u64
inlined $T $t_from_f32(float x)
{
    const bool low = x <= $lf, high = x >= $hf;
    const $T inside = ($T)pick_f32(low | high | (x != x), 0, x);
    return pick_$t(low, $L, pick_$t(high, $H, inside));
}

//! $t_from_f64: i8 i16 i32 i64 u8 u16 u32 u64
inlined $T $t_from_f64(double x)
{
    const bool low = x <= $l, high = x >= $h;
    const $T inside = ($T)pick_f64(low | high | (x != x), 0, x);
    return pick_$t(low, $L, pick_$t(high, $H, inside));
}
