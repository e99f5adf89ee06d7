/* The numbers of a program for a batch: vectors with a state in each of LANES lanes, by the extensions of GCC and Clang;
   of doubles, or where SINGLE says so of floats. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "functions.h"

#ifdef SINGLE
typedef float number;
typedef int whole;
#define LARGEST FLT_MAX
#define SMALLEST FLT_MIN
#define SQUARE_ROOT sqrtf
#else
typedef double number;
typedef long long whole;
#define LARGEST DBL_MAX
#define SMALLEST DBL_MIN
#define SQUARE_ROOT sqrt
#endif
typedef number vec __attribute__((vector_size(sizeof(number) * LANES)));
typedef whole ivec __attribute__((vector_size(sizeof(number) * LANES)));
typedef vec real;
typedef ivec flag;
typedef ivec bits;

#define BITS(x) ((ivec)(x))
#define NUMBER(x) ((vec)(x))

INLINE vec MAG(vec x) { return (vec)((ivec)x & ~(ivec)(-(vec){0})); }
INLINE vec ROOT(vec x) {
    for (int l = 0; l < LANES; ++l) x[l] = SQUARE_ROOT(x[l]);
    return x;
}
INLINE vec MAX(vec x, vec y) {
    const ivec first = x > y;
    return (vec)(((ivec)x & first) | ((ivec)y & ~first));
}
INLINE ivec STRANGE(vec x) { return ~(MAG(x) <= LARGEST); } /* the lanes in which it is not finite */
INLINE vec TAINT(ivec strange) { return (vec)(strange & (ivec)((vec){0} + (number)NAN)); }

/* Whether anything is set in a lane. */
INLINE int any(ivec x) {
    whole found = 0;
    for (int l = 0; l < LANES; ++l) found |= x[l];
    return found != 0;
}
