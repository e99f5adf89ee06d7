/* Whether numbers are what they should be. */

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double number_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A number whose sign says whether one is not finite, by its bits, so that no flag of a compiler undoes it: an exponent that
   is all ones carries into it. */
static inline uint64_t carried(double x) { return (bits_of(x) & (UINT64_C(0x7ff) << 52)) + (UINT64_C(1) << 52); }

/* Whether n numbers are finite. */
static inline int all_finite(int n, const double *x) {
    uint64_t carry = 0;
    for (int k = 0; k < n; ++k) carry |= carried(x[k]);
    return !(carry >> 63);
}

/* Writes a quaternion at unit length. Returns whether it had that, or nearly. */
static inline int normalise(const double *q, double tolerance, double *unit) {
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(fabs(norm - 1) <= tolerance)) return 0;
    for (int k = 0; k < 4; ++k) unit[k] = q[k] / norm;
    return 1;
}
