#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "filter.h"

#define K (N_V + N_F)
#define N (N_S + K)
#define ROWS (K + P)
#define ROOM (ROWS > N ? ROWS : N)
#define BLOCKS (N / LANES + 1)
#define WIDTH (BLOCKS * LANES)
#define M_BLOCKS ((K + LANES - 1) / LANES)
#define M_WIDTH (M_BLOCKS * LANES)
#define V_BLOCKS ((N_V + LANES - 1) / LANES)
#define TILE 4
#define PARTS (LANES < 8 ? 2 : 4)
#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((cold))
#else
#define INLINE static inline
#define RARE static
#endif
#if LANES > 1
typedef double vec __attribute__((vector_size(8 * LANES)));
#else
typedef double vec;
#endif

/* The workspace. */
typedef struct {
    vec rows[ROOM * BLOCKS], moving[N * BLOCKS], rates[N_V * BLOCKS + 1], scale[BLOCKS], sizes[BLOCKS], sums[BLOCKS];
    vec noise[N * M_BLOCKS + 1], noise_sums[M_BLOCKS + 1], noise_column[M_BLOCKS + 1], shares[N_S * V_BLOCKS + 1];
    double column[ROOM + 1], pivots[N + 1], roots[P + 1];
} workspace;
_Static_assert(sizeof(workspace) <= N_WORK * sizeof(double), "the workspace has room");

/* sums = x^T M of a column x, whose numbers lie step apart, and rows M of which a few blocks are looked at; several
   sums at a time, as each addition waits for the one before. */
INLINE void sum_tile(int tiles, int n, const double *x, int step, const vec *M, int blocks, vec *sums) {
    vec t[PARTS][TILE] = {0};
    int r = 0;
    for (; r + PARTS <= n; r += PARTS)
        for (int part = 0; part < PARTS; ++part)
            for (int b = 0; b < tiles; ++b) t[part][b] += x[(r + part) * step] * M[(r + part) * blocks + b];
    for (; r < n; ++r)
        for (int b = 0; b < tiles; ++b) t[0][b] += x[r * step] * M[r * blocks + b];
    for (int b = 0; b < tiles; ++b) {
        vec sum = t[0][b];
        for (int part = 1; part < PARTS; ++part) sum += t[part][b];
        sums[b] = sum;
    }
}

/* M -= y t^T */
INLINE void take_tile(int tiles, int n, const double *y, vec *M, int blocks, const vec *sums) {
    vec t[TILE];
    for (int b = 0; b < tiles; ++b) t[b] = sums[b];
    for (int r = 0; r < n; ++r)
        for (int b = 0; b < tiles; ++b) M[r * blocks + b] -= y[r] * t[b];
}

/* By tiles that fit the registers. */
#define TILED(call, ...)                                        \
    for (; b + TILE <= end; b += TILE) call(TILE, __VA_ARGS__); \
    switch (end - b) {                                          \
    case 3:                                                     \
        call(3, __VA_ARGS__);                                   \
        break;                                                  \
    case 2:                                                     \
        call(2, __VA_ARGS__);                                   \
        break;                                                  \
    case 1:                                                     \
        call(1, __VA_ARGS__);                                   \
        break;                                                  \
    }

INLINE void sum_rows(int n, const double *x, int step, const vec *M, int blocks, int b, int end,
                     vec *sums){TILED(sum_tile, n, x, step, M + b, blocks, sums + b)}

INLINE void take_rows(int n, const double *y, vec *M, int blocks, int b, int end,
                      const vec *sums){TILED(take_tile, n, y, M + b, blocks, sums + b)}

/* Rows of pivots go where their columns are; where a pivot vanishes, the row is zero. */
RARE void put_in_place(int rank, int n, int blocks, const double *pivots, vec *M) {
    for (int j = n; j-- > 0;) {
        if (pivots[j]) {
            --rank;
            if (rank < j) memcpy(M + j * blocks, M + rank * blocks, sizeof(vec) * (size_t)blocks);
        } else {
            memset(M + j * blocks, 0, sizeof(vec) * (size_t)blocks);
        }
    }
}

/* Makes rows [A | b] of n columns and one upper triangular by reflections; by column j only the first ends[j] have
   begun. Returns the rank, writes one over each pivot, or 0, and the sum of squares that is left of b. What is below a
   pivot is not cleared before the end: nobody reads it, and a vector that is read just after one of its numbers was
   written comes late. column: room for as many numbers as rows; sums, sizes: for a row. */
INLINE int reflected(int rows, int n, int blocks, vec *restrict M, const int *restrict ends, double *restrict pivots,
                     double *left, double *restrict column, vec *restrict sums, vec *restrict sizes) {
    const int width = blocks * LANES;
    for (int b = 0; b < blocks; ++b) {
        const int next = (b + 1) * LANES, begun = next < n ? ends[next - 1] : rows;
        vec even = {0}, odd = {0}; /* as each addition waits for the one before */
        int r = begun % 2;
        if (r) even = M[b] * M[b];
        for (; r < begun; r += 2) {
            odd += M[r * blocks + b] * M[r * blocks + b];
            even += M[(r + 1) * blocks + b] * M[(r + 1) * blocks + b];
        }
        sizes[b] = even + odd;
    }
    int at = 0;
    for (int j = 0; j < n; ++j) {
        const double least = ZERO_PIVOT * ZERO_PIVOT * ((double *)sizes)[j];
        const int count = ends[j] - at;
        vec *const first = M + at * blocks;
        double *const entry = (double *)first + j;
        double square = 0;
        if (count > 1) {
            sum_rows(count, entry, width, first, blocks, j / LANES, blocks, sums);
            for (int r = 0; r < count; ++r) column[r] = entry[r * width];
            square = ((double *)sums)[j];
        } else if (count == 1) {
            square = *entry * *entry;
        }
        if (square <= least) {
            pivots[j] = 0;
            continue;
        }
        if (count == 1) {
            pivots[j] = 1 / *entry;
        } else {
            /* v = x + norm e, with the sign of x: x - v v^T x / (norm (norm + |x|)) = -norm e */
            const double norm = copysign(sqrt(square), column[0]);
            const double factor = 1 / (square + norm * column[0]);
            for (int b = j / LANES; b < blocks; ++b) sums[b] = factor * (sums[b] + norm * first[b]);
            column[0] += norm;
            take_rows(count, column, first, blocks, j / LANES, blocks, sums);
            pivots[j] = -1 / norm;
        }
        ++at;
    }
    double sum = 0;
    for (int r = at; r < rows; ++r) sum += ((double *)M)[r * width + n] * ((double *)M)[r * width + n];
    *left = sum;
    if (at < n) put_in_place(at, n, blocks, pivots, M);
    for (int j = 1; j < n; ++j) {
        vec *const row = M + j * blocks;
        for (int b = 0; b < j / LANES; ++b) row[b] = (vec){0};
        for (int l = j / LANES * LANES; l < j; ++l) ((double *)row)[l] = 0;
    }
    return at;
}

/* Makes rows of all unknowns triangular. */
static int triangular(int rows, vec *M, const int *ends, double *pivots, double *left, workspace *w) {
    return reflected(rows, N, BLOCKS, M, ends, pivots, left, w->column, w->sums, w->sizes);
}

/* By its bits, so that no flag of the compiler undoes it. */
INLINE int is_finite(double x) {
    unsigned long long bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
}

/* Multiplies by a number above zero, whose exponent goes elsewhere. */
INLINE void multiply(double *product, int *exponent, double x) {
    unsigned long long bits;
    if (x < DBL_MIN) {
        x *= 0x1p512;
        *exponent -= 512;
    }
    memcpy(&bits, &x, sizeof bits);
    *exponent += (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;
    memcpy(&x, &bits, sizeof bits);
    *product *= x;
    if (*product > 0x1p512) {
        *product *= 0x1p-512;
        *exponent += 512;
    }
}

/* What depends on what n rows of R do not determine becomes `mark`; unseen: room for n numbers. */
RARE void blot(int n, const double *R, double *unseen, double *u, double mark) {
    for (int j = 0; j < n; ++j) {
        if (R[j * WIDTH + j]) continue;
        double largest = 0;
        for (int i = 0; i < n; ++i) unseen[i] = i == j;
        for (int i = j; i-- > 0;) {
            const double pivot = R[i * WIDTH + i];
            double sum = 0;
            for (int l = i + 1; l <= j; ++l) sum += R[i * WIDTH + l] * unseen[l];
            unseen[i] = pivot ? -sum / pivot : 0;
        }
        for (int pass = 0; pass < 2; ++pass)
            for (int i = 0; i <= j; ++i) {
                double size = 0;
                for (int r = 0; r <= i; ++r) size += R[r * WIDTH + i] * R[r * WIDTH + i];
                size = (R[i * WIDTH + i] ? sqrt(size) : sqrt(size + 1)) * fabs(unseen[i]);
                if (!pass)
                    largest = fmax(largest, size);
                else if (size > LOOSE * largest)
                    u[i] = mark;
            }
    }
}

/* The estimate of the rows of u, of so many pivots. */
static void solve_rows(filter *at, int rank) {
    workspace *const w = (workspace *)at->work;
    const double *const M = (double *)w->rows;
    for (int j = 0; j < N; ++j) at->u[j] = M[j * WIDTH + N];
    for (int j = N; j-- > 0;) {
        const double u = at->u[j] *= at->pivots[j];
        for (int i = 0; i < j; ++i) at->u[i] -= M[i * WIDTH + j] * u;
    }
    if (rank < N) blot(N, M, w->column, at->u, NAN);
}

/* What is known after the sensors; returns how many pivots vanish. */
SEEN int update(filter *at) {
    workspace *const w = (workspace *)at->work;
    double *const M = (double *)w->rows;
    double over = 1, under = 1, readings = 0;
    int more = 0, less = 0;
    memset(w->rows, 0, sizeof w->rows);
    at->degrees = 0;
    for (int i = 0; i < K; ++i) {
        double *const row = M + WIDTH * memory_row[i];
        const double diagonal = at->known.R[K * i + i];
        for (int l = 0; l < K; ++l) row[N_S + l] = at->known.R[K * i + l];
        row[N] = at->known.z[i];
        if (diagonal != 0) {
            multiply(&over, &more, diagonal * diagonal);
            ++at->degrees;
        }
    }
    for (int i = 0; i < P; ++i) w->roots[i] = sqrt(at->weights[i]);
    for (int i = 0; i < P; ++i) {
        if (w->roots[i] == 0) continue;
        const double reading = M[WIDTH * sensor_row[i] + N] = -w->roots[i] * at->c[i];
        readings += reading * reading;
        multiply(&over, &more, at->weights[i]);
        ++at->degrees;
    }
    for (int e = 0; e < N_A; ++e) {
        const double root = w->roots[entry_sensor[e]];
        M[entry_place[e]] = root == 0 ? 0 : root * at->A[e];
    }
    const int rank = triangular(ROWS, w->rows, row_ends, at->pivots, &at->nis, w);
    if (!(readings < LARGEST_SQUARE)) at->nis = NAN;
    at->degrees -= rank;
    for (int j = 0; j < N; ++j)
        if (at->pivots[j]) multiply(&under, &less, M[j * WIDTH + j] * M[j * WIDTH + j]);
    at->log_likelihood = (log(over) - log(under) + (more - less) * 0.69314718055994530942 - at->nis -
                          at->degrees * 1.8378770664093454836) /
                         2;
    solve_rows(at, rank);
    return N - rank;
}

/* The rows of v in `moving` are of v+ in place of v = (v+ - rates [s v+ f -1]) / a then. */
static void substitute(int first, int rows, workspace *w) {
    for (int r = first; r < rows; ++r) {
        const int i = r < N_S ? 0 : r - N_S;
        sum_rows(N_V - i, (double *)w->moving + r * WIDTH + N_S + i, 1, w->rates + i * BLOCKS, BLOCKS, 0, BLOCKS,
                 w->sums);
        for (int b = 0; b < BLOCKS; ++b) w->moving[r * BLOCKS + b] -= w->sums[b];
    }
}

/* Where rows of s say nothing of v: s = R_s^-1 (z_s - R_f f + e) with noise e of unit variance, so that the rates of v
   have those of f and a noise, whose parts are columns of `shares`. */
static void put_in_rates(const double *pivots, workspace *w) {
    const double *const R = (double *)w->rows;
    double *const rates = (double *)w->rates, *const shares = (double *)w->shares;
    for (int j = 0; j < N_S; ++j) {
        vec *const share = w->shares + j * V_BLOCKS;
        for (int i = 0; i < N_V; ++i) {
            shares[j * V_BLOCKS * LANES + i] = rates[i * WIDTH + j];
            rates[i * WIDTH + j] = 0;
        }
        for (int b = 0; b < V_BLOCKS; ++b) {
            for (int l = 0; l < j; ++l) share[b] -= R[l * WIDTH + j] * w->shares[l * V_BLOCKS + b];
            share[b] *= pivots[j];
        }
    }
    for (int i = 0; i < N_V; ++i)
        for (int b = (N_S + N_V) / LANES; b < BLOCKS; ++b) {
            vec sum = {0};
            for (int j = 0; j < N_S; ++j) sum += shares[j * V_BLOCKS * LANES + i] * w->rows[j * BLOCKS + b];
            w->rates[i * BLOCKS + b] -= sum * w->scale[b];
        }
}

/* Rates that take of numbers of v take of these numbers of v+ then: the last first, as each takes of later ones only. */
static void chain_rates(workspace *w) {
    double *const rates = (double *)w->rates;
    for (int i = CHAINED ? N_V - 1 : 0; i-- > 0;)
        for (int j = N_V - 1; j > i; --j) {
            const double share = rates[i * WIDTH + N_S + j];
            if (share == 0) continue;
            for (int b = 0; b < BLOCKS; ++b) w->rates[i * BLOCKS + b] -= share * w->rates[j * BLOCKS + b];
        }
}

/* Writes the rows of u over s and m', which m+ would be without noise, and makes those of m' free of s. Where that may
   be done apart, and is, v' has none of the noise of s either: returns how much of that is in `shares`. */
INLINE int carry(filter *at, int apart) {
    workspace *const w = (workspace *)at->work;
    double *const scale = (double *)w->scale, *const rates = (double *)w->rates;
    int more = 0;
    for (int j = 0; j < WIDTH; ++j) scale[j] = 1;
    for (int i = 0; i < K; ++i) scale[N_S + i] = 1 / (at->decay[i] > SMALLEST_DECAY ? at->decay[i] : SMALLEST_DECAY);
    for (int r = 0; r < N; ++r)
        for (int b = 0; b < BLOCKS; ++b) w->moving[r * BLOCKS + b] = w->rows[r * BLOCKS + b] * w->scale[b];
    if (N_V > 0) {
        double left;
        memset(w->rates, 0, sizeof w->rates);
        if (at->dt > 0) { /* or they are not known */
            for (int e = 0; e < N_X; ++e) rates[rate_place[e]] = at->dt * at->X[e] * scale[rate_column[e]];
            for (int i = 0; i < N_V; ++i) rates[i * WIDTH + N] = -at->dt * at->x[i];
        }
        for (int j = 0; j < N_S; ++j) apart &= at->pivots[j] != 0;
        if (N_S > 0 && apart) {
            more = N_S;
            put_in_rates(at->pivots, w);
            chain_rates(w);
            substitute(N_S, N_S + N_V, w);
        } else {
            chain_rates(w);
            substitute(0, N_S + N_V, w);
            if (N_S > 0) triangular(N, w->moving, moving_ends, w->pivots, &left, w);
        }
    }
    return more;
}

/* U U^T = 1 + R Q R^T, U upper triangular, by reflections of columns of [R sqrt(Q) | 1] from the last row up; the rows
   are multiplied by one over U as it comes about. `noise` holds R sqrt(Q) column by column, and after these what v has
   of the noise of s; its first NOISELESS columns are zero. Where v has nothing of s, the same reflections turn [1 | 0]
   into [spread | gain], which are kept column by column where there is room for them. */
INLINE void add_noise(filter *at, int more, vec *spread, vec *gain) {
    workspace *const w = (workspace *)at->work;
    double *const M = (double *)w->moving, *const noise = (double *)w->noise;
    double *const sums = (double *)w->noise_sums, *const column = w->column;
    if (spread) {
        memset(spread, 0, sizeof(vec) * K * M_BLOCKS);
        memset(gain, 0, sizeof(vec) * K * M_BLOCKS);
        for (int l = 0; l < K; ++l) ((double *)spread)[l * M_WIDTH + l] = 1;
    }
    memset(w->noise, 0, sizeof w->noise);
    for (int l = 0; l < K; ++l)
        for (int i = 0; i <= l; ++i) noise[l * M_WIDTH + i] = M[(N_S + i) * WIDTH + N_S + l];
    for (int j = 0; j < more; ++j)
        for (int i = 0; i < N_V; ++i) {
            const double share = ((double *)(w->shares + j * V_BLOCKS))[i];
            for (int b = 0; b < V_BLOCKS; ++b) w->noise[(K + j) * M_BLOCKS + b] += share * w->noise[i * M_BLOCKS + b];
        }
    for (int l = NOISELESS; l < K; ++l) {
        const double g = sqrt(at->Q[l]);
        for (int b = 0; b < M_BLOCKS; ++b) w->noise[l * M_BLOCKS + b] *= g;
    }
    for (int i = K; i-- > 0;) {
        const int first = i > NOISELESS ? i : NOISELESS, n = K - first + (i < N_V ? more : 0);
        const int end = i / LANES + 1, start = (N_S + i) / LANES;
        vec *const from = w->noise + first * M_BLOCKS, *const row = w->moving + (N_S + i) * BLOCKS;
        for (int l = 0; l < n; ++l) column[l] = noise[(first + l) * M_WIDTH + i];
        sum_rows(n, noise + first * M_WIDTH + i, M_WIDTH, from, M_BLOCKS, 0, end, w->noise_sums);
        const double square = 1 + sums[i], norm = sqrt(square), factor = 1 / (square + norm), inverse = 1 / norm;
        vec *const parts = w->noise_sums;
        for (int b = 0; b < end; ++b) w->noise_column[b] = parts[b] * inverse;
        for (int b = 0; b < end; ++b) parts[b] *= factor;
        take_rows(n, column, from, M_BLOCKS, 0, end, parts);
        for (int b = start; b < BLOCKS; ++b) row[b] *= inverse;
        take_rows(i, (double *)w->noise_column, w->moving + N_S * BLOCKS, BLOCKS, start, BLOCKS, row);
        if (spread) {
            vec *const turned = spread + first * M_BLOCKS;
            sum_rows(n, column, 1, turned, M_BLOCKS, i / LANES, M_BLOCKS, parts);
            for (int b = i / LANES; b < M_BLOCKS; ++b) {
                gain[i * M_BLOCKS + b] = parts[b] * inverse;
                parts[b] *= factor;
            }
            take_rows(n, column, turned, M_BLOCKS, i / LANES, M_BLOCKS, parts);
        }
    }
    for (int i = 0; i < K; ++i) {
        for (int l = 0; l < K; ++l) at->known.R[K * i + l] = M[(N_S + i) * WIDTH + N_S + l];
        at->known.z[i] = M[(N_S + i) * WIDTH + N];
    }
}

/* What is known of the memory after dt. */
SEEN void propagate(filter *at) { add_noise(at, carry(at, S_APART), NULL, NULL); }
