// Conversions that C leaves undefined or does not have: floats to integers truncate and saturate,
// NaN becomes 0; bfloat16 is the upper half of a float, rounded to nearest, ties to even.
// What is more than -1 and not more than 0 becomes 0 before the cast of C: gcc 12 makes a cast to
// integers and back one rounding, which gives -0.

//! $t_from_f32: i8 i16 i32 i64 u8 u16 u32 u64
static inline $T $t_from_f32(float x)
{
    return !(x > 0 || x <= -1) ? 0 : x <= $lf ? $L : x >= $hf ? $H : ($T)x;
}

//! $t_from_f64: i8 i16 i32 i64 u8 u16 u32 u64
static inline $T $t_from_f64(double x)
{
    return !(x > 0 || x <= -1) ? 0 : x <= $l ? $L : x >= $h ? $H : ($T)x;
}

//! f32_from_bf16
static inline float f32_from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

//! bf16_from_f32
static inline uint16_t bf16_from_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : rounded);
}

//! bool_from_$t: c64 c128
static inline bool bool_from_$t($T x) { return x.re != 0 || x.im != 0; }

//! c64_from_c128
static inline pe_c64 c64_from_c128(pe_c128 x) { return (pe_c64){(float)x.re, (float)x.im}; }

//! c128_from_c64
static inline pe_c128 c128_from_c64(pe_c64 x) { return (pe_c128){x.re, x.im}; }
