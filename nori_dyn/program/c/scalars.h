/* The numbers of a program for one state: doubles, and vectors of two, four or eight in which isomorphic limbs are packed,
   by the extensions of GCC and Clang. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "checks.h"
#include "functions.h"

typedef double number;
typedef number real;
typedef int flag;
typedef uint64_t bits;

#define BITS(x) bits_of(x)
#define NUMBER(x) number_of(x)
#define SMALLEST DBL_MIN
#define MAG(x) fabs(x)
#define ROOT(x) sqrt(x)
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define STRANGE(x) (!(fabs(x) <= DBL_MAX)) /* whether it is not finite */
#define TAINT(strange) ((strange) ? (double)NAN : 0.0)

#ifdef __GNUC__
typedef double v2 __attribute__((vector_size(16)));
typedef double v4 __attribute__((vector_size(32)));
typedef double v8 __attribute__((vector_size(64)));
/* The same at any place in an array of doubles. */
typedef v2 u2 __attribute__((aligned(8), may_alias));
typedef v4 u4 __attribute__((aligned(8), may_alias));
typedef v8 u8 __attribute__((aligned(8), may_alias));
#endif
