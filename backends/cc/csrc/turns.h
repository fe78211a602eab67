// Lines of memory as columns: to[gap*i + j] = from[stride*j + i]. Pieces of two lines are in one
// vector, so that no value crosses its middle afterwards. gcc has the builtin from 12 on.

//! turn_f32x8
/* The first four elements of eight lines. */
static inline void turn_f32x8(float *to, int64_t gap, const float *from, int64_t stride)
{
#if __GNUC__ >= 12 || defined(__clang__)
    f32x8 line[4], two[4];
    for (int j = 0; j < 4; j++) {
        const f32x4 low = *(const f32x4_at *)&from[stride*j];
        const f32x4 high = *(const f32x4_at *)&from[stride*(j + 4)];
        line[j] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    for (int j = 0; j < 2; j++) {
        two[j] = __builtin_shufflevector(line[2*j], line[2*j + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        two[j + 2] = __builtin_shufflevector(line[2*j], line[2*j + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 4; i += 2) {
        *(f32x8_at *)&to[gap*i] =
            __builtin_shufflevector(two[i], two[i + 1], 0, 1, 8, 9, 4, 5, 12, 13);
        *(f32x8_at *)&to[gap*(i + 1)] =
            __builtin_shufflevector(two[i], two[i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#else
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 8; j++) to[gap*i + j] = from[stride*j + i];
    }
#endif
}

//! turn_f64x4
/* The first two elements of four lines. */
static inline void turn_f64x4(double *to, int64_t gap, const double *from, int64_t stride)
{
#if __GNUC__ >= 12 || defined(__clang__)
    f64x4 line[2];
    for (int j = 0; j < 2; j++) {
        const f64x2 low = *(const f64x2_at *)&from[stride*j];
        const f64x2 high = *(const f64x2_at *)&from[stride*(j + 2)];
        line[j] = __builtin_shufflevector(low, high, 0, 1, 2, 3);
    }
    *(f64x4_at *)to = __builtin_shufflevector(line[0], line[1], 0, 4, 2, 6);
    *(f64x4_at *)&to[gap] = __builtin_shufflevector(line[0], line[1], 1, 5, 3, 7);
#else
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 4; j++) to[gap*i + j] = from[stride*j + i];
    }
#endif
}
