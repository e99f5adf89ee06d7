/* Sines and cosines: a Cody-Waite reduction x = k pi/2 + r by pi/2 in three parts, |r| <= pi/4, and polynomials of r that
   were fitted for it. There is no branch, so that compilers work on several numbers at a time. */

#ifdef SINGLE
#define LARGE_ANGLE 8192.0f     /* beyond it three parts of pi/2 are not exact */
#define QUARTERS 0x1.45f306p-1f /* 2 / pi */
#define SHIFT 0x1.8p23f /* what is added to it has no fraction left, and its last bits are those of a whole number */
#define PARTS_OF_QUARTER 1.5703125f, 4.837512969970703125e-4f, 7.54978995489188216e-8f
#else
#define LARGE_ANGLE 1e6
#define QUARTERS 0x1.45f306dc9c883p-1
#define SHIFT 0x1.8p52
#define PARTS_OF_QUARTER 0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69
#endif
#define LAST_BUT_ONE (8 * (int)sizeof(number) - 2) /* how far the last bit but one is from the sign */

/* Whether sums are rounded to doubles in the order in which they are written. */
#if !defined(__GNUC__) || FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#define AS_WRITTEN 0
#elif defined(__clang__)
#define AS_WRITTEN 1 /* by the pragma below */
#elif defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__)
#define AS_WRITTEN 0
#else
#define AS_WRITTEN 1
#endif

/* Of an angle x: s becomes r, c a number with k in its last bits. */
INLINE void reduce(const real x, real *s, real *c) {
#ifdef __clang__
#pragma clang fp reassociate(off)
#endif
#if AS_WRITTEN
    const real shifted = x * QUARTERS + SHIFT, k = shifted - SHIFT;
#else
    const real k = (double)(int32_t)(x * QUARTERS + 1048576.5) - 1048576.0, shifted = k + SHIFT;
#endif
    const number parts[] = {PARTS_OF_QUARTER};
    *s = ((x - k * parts[0]) - k * parts[1]) - k * parts[2];
    *c = shifted;
}

/* What `reduce` has left becomes sine and cosine. Many angles are reduced before the first comes here: what waits for
   one another is then half as long, and the processor has twice as many in hand. */
INLINE void turn(real *s, real *c) {
    const real r = *s, z = r * r;
#ifdef SINGLE /* the polynomials of Moshier's Cephes */
    const real ps = 8.3321608736e-3f + z * -1.9515295891e-4f;
    const real pc = 4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f);
    const real third = z * ps - 1.6666654611e-1f;
#else
    const real ps = 0.008333333333333333 +
                    z * (-0.00019841269841268963 +
                         z * (2.755731922232443e-06 + z * (-2.505210723603745e-08 +
                                                           z * (1.6058684329175855e-10 + z * -7.595306678125121e-13))));
    const real pc = 0.041666666666666664 +
                    z * (-0.0013888888888887398 +
                         z * (2.480158729876456e-05 + z * (-2.7557317271145144e-07 +
                                                           z * (2.087614614655861e-09 + z * -1.1382623647474604e-11))));
    const real third = z * ps - 0.16666666666666666;
#endif
    const bits quadrant = BITS(*c), sine = BITS(r + r * z * third);
    const bits cosine = BITS(1.0 - 0.5 * z + z * z * pc), swap = (sine ^ cosine) & -(quadrant & 1);
    *s = NUMBER(sine ^ swap ^ (quadrant & 2) << LAST_BUT_ONE);
    *c = NUMBER(cosine ^ swap ^ ((quadrant + 1) & 2) << LAST_BUT_ONE);
}

/* Sines and cosines of those of n angles that are beyond the reduction, by the library. */
RARELY static void turn_far(int n, const number *x, number *s, number *c) {
    for (int l = 0; l < n; ++l) {
        if (fabs(x[l]) < LARGE_ANGLE) continue;
        s[l] = sin(x[l]);
        c[l] = cos(x[l]);
    }
}
