/* The numbers of a program for a batch: vectors with a state in each of LANES lanes, by the extensions of GCC and Clang. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "functions.h"

typedef double vec __attribute__((vector_size(8 * LANES)));
typedef long long ivec __attribute__((vector_size(8 * LANES)));
typedef vec real;
typedef ivec flag;
typedef ivec bits;

#define BITS(x) ((ivec)(x))
#define NUMBER(x) ((vec)(x))

INLINE vec MAG(vec x) { return (vec)((ivec)x & 0x7fffffffffffffffLL); }
INLINE vec ROOT(vec x) {
    for (int l = 0; l < LANES; ++l) x[l] = sqrt(x[l]);
    return x;
}
INLINE vec MAX(vec x, vec y) {
    const ivec first = x > y;
    return (vec)(((ivec)x & first) | ((ivec)y & ~first));
}
INLINE ivec STRANGE(vec x) { return ~(MAG(x) <= DBL_MAX); } /* the lanes in which it is not finite */
INLINE vec TAINT(ivec strange) { return (vec)(strange & 0x7ff8000000000000LL); }

/* Whether anything is set in a lane. */
INLINE int any(ivec x) {
    long long found = 0;
    for (int l = 0; l < LANES; ++l) found |= x[l];
    return found != 0;
}
