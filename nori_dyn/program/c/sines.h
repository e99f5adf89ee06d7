/* Sines and cosines: a Cody-Waite reduction x = k pi/2 + r by pi/2 in three parts, |r| <= pi/4, and polynomials of r that
   were fitted for it. There is no branch, so that compilers work on several numbers at a time. */

#define LARGE_ANGLE 1e6               /* beyond it three parts of pi/2 are not exact */
#define QUARTERS 0x1.45f306dc9c883p-1 /* 2 / pi */
#define SHIFT 0x1.8p52 /* what is added to it has no fraction left, and its last bits are those of a whole number */

/* Of an angle x: s becomes r, c a number with k in its last bits. */
INLINE void reduce(const real x, real *s, real *c) {
#if defined(__GNUC__) && !defined(__FAST_MATH__)
    const real shifted = x * QUARTERS + SHIFT, k = shifted - SHIFT;
#else
    const real k = (double)(int32_t)(x * QUARTERS + 1048576.5) - 1048576.0, shifted = k + SHIFT;
#endif
    *s = ((x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69;
    *c = shifted;
}

/* What `reduce` has left becomes sine and cosine. Many angles are reduced before the first comes here: what waits for
   one another is then half as long, and the processor has twice as many in hand. */
INLINE void turn(real *s, real *c) {
    const real r = *s, z = r * r;
    const real ps = 0.008333333333333333 +
                    z * (-0.00019841269841268963 +
                         z * (2.755731922232443e-06 + z * (-2.505210723603745e-08 +
                                                           z * (1.6058684329175855e-10 + z * -7.595306678125121e-13))));
    const real pc = 0.041666666666666664 +
                    z * (-0.0013888888888887398 +
                         z * (2.480158729876456e-05 + z * (-2.7557317271145144e-07 +
                                                           z * (2.087614614655861e-09 + z * -1.1382623647474604e-11))));
    const bits quadrant = BITS(*c), sine = BITS(r + r * z * (z * ps - 0.16666666666666666));
    const bits cosine = BITS(1.0 - 0.5 * z + z * z * pc), swap = (sine ^ cosine) & -(quadrant & 1);
    *s = NUMBER(sine ^ swap ^ (quadrant & 2) << 62);
    *c = NUMBER(cosine ^ swap ^ ((quadrant + 1) & 2) << 62);
}

/* Sines and cosines of those of n angles that are beyond the reduction, by the library. */
RARELY static void turn_far(int n, const double *x, double *s, double *c) {
    for (int l = 0; l < n; ++l) {
        if (fabs(x[l]) < LARGE_ANGLE) continue;
        s[l] = sin(x[l]);
        c[l] = cos(x[l]);
    }
}
