/* Rows of a program, in blocks of BLOCK columns: vectors of LANES of them. */

typedef double columns __attribute__((vector_size(8 * LANES), may_alias));

#define B(place) (*(columns *)(w + (place) + k))
#if LANES == BLOCK
#define PARTS const int k = 0;
#else
#define PARTS for (int k = 0; k < BLOCK; k += LANES)
#endif
#define OUT(place, from) memcpy(out + (place), w + (from), BLOCK * sizeof(double))
