/* A batch of a program: vectors with one state in each lane. The unit says before what it does for `one_state.h`, and
   N_ARRAYS, how many arrays of inputs there are; N_WORK, the length of the workspace; GROUPS, for how many groups of LANES
   states each function of statements is called before the next; `output_places`: where each output is among N_OUTPUTS
   that differ; `are_one`: whether it and those after it, LANES of them, are one constant. */

#include "program.h"
#include "sines.h"
#include "statuses.h"
#include "stream.h"

typedef vec unaligned __attribute__((aligned(sizeof(number)), may_alias));

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

/* LANES rows of LANES numbers become columns: a butterfly, exchanging ever larger blocks of b numbers. Floats are first
   interleaved in pairs, for which processors have instructions, and so leave columns 1 and 2 of four exchanged. */
#define FIRST(k, b) ((k) & (b) ? LANES + (k) - (b) : (k))
#define SECOND(k, b) ((k) & (b) ? LANES + (k) : (k) + (b))
#define LOW(k, b) ((k) % 2 * LANES + (k) / 4 * 4 + (k) % 4 / 2)
#define HIGH(k, b) (LOW(k, b) + 2)
#if LANES == 16
#define LIST(F, b)                                                                                                \
    F(0, b), F(1, b), F(2, b), F(3, b), F(4, b), F(5, b), F(6, b), F(7, b), F(8, b), F(9, b), F(10, b), F(11, b), \
        F(12, b), F(13, b), F(14, b), F(15, b)
#elif LANES == 8
#define LIST(F, b) F(0, b), F(1, b), F(2, b), F(3, b), F(4, b), F(5, b), F(6, b), F(7, b)
#elif LANES == 4
#define LIST(F, b) F(0, b), F(1, b), F(2, b), F(3, b)
#else
#define LIST(F, b) F(0, b), F(1, b)
#endif
#define EXCHANGE(b, LEFT, RIGHT)                        \
    for (int i = 0; i < LANES; ++i)                     \
        if (!(i & (b))) {                               \
            const vec x = t[i], y = t[i + (b)];         \
            t[i] = SHUFFLE(x, y, LIST(LEFT, b));        \
            t[i + (b)] = SHUFFLE(x, y, LIST(RIGHT, b)); \
        }

INLINE void transpose(vec *t) {
#ifdef SINGLE
    EXCHANGE(1, LOW, HIGH)
#elif LANES >= 2
    EXCHANGE(1, FIRST, SECOND)
#endif
#if LANES >= 4
    EXCHANGE(2, FIRST, SECOND)
#endif
#ifdef SINGLE
    for (int i = 1; i < LANES; i += 4) {
        const vec x = t[i];
        t[i] = t[i + 1];
        t[i + 1] = x;
    }
#endif
#if LANES >= 8
    EXCHANGE(4, FIRST, SECOND)
#endif
#if LANES >= 16
    EXCHANGE(8, FIRST, SECOND)
#endif
    (void)t;
}

/* The numbers of LANES rows as vectors across them. Returns zero in the lanes in which they are finite, where there are
   LANES at least; what is put together number by number is not read again at once. Of shorter rows whole vectors may be
   read where is_long says so. */
static inline vec gather_rows(ptrdiff_t n, const number *const *rows, int is_long, vec *x) {
    vec taint = {0}, more = {0};
    if (n < LANES && is_long) {
        vec t[LANES];
        for (int l = 0; l < LANES; ++l) t[l] = *(const unaligned *)rows[l];
        transpose(t);
        for (ptrdiff_t k = 0; k < n; ++k) x[k] = t[k];
        return taint;
    }
    for (ptrdiff_t k = 0; n >= LANES && k < n; k += LANES) {
        vec t[LANES];
        if (k > n - LANES) k = n - LANES; /* the last block overlaps the one before */
        for (int l = 0; l < LANES; ++l) t[l] = *(const unaligned *)(rows[l] + k);
        transpose(t);
        for (int l = 0; l < LANES; ++l) x[k + l] = t[l];
        for (int l = 0; l < LANES; l += 2) {
            taint += t[l] * 0.0;
            more += t[l + 1 < LANES ? l + 1 : l] * 0.0;
        }
    }
    for (ptrdiff_t k = 0; n < LANES && k < n; ++k)
        for (int l = 0; l < LANES; ++l) x[k][l] = rows[l][k];
    return taint + more;
}

/* The n numbers of `left` states, or of LANES where there are more, as vectors across them: step lies between states,
   across between the numbers of one. Lanes without a state have the last one. Returns as `gather_rows`. */
static inline vec gather(ptrdiff_t n, const number *from, ptrdiff_t step, ptrdiff_t across, ptrdiff_t left, vec *x) {
    vec taint = {0};
    if (across == 1) {
        const number *rows[LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = from + step * (l < left ? l : left - 1);
        taint = gather_rows(n, rows, left >= LANES && step * (left - LANES) + n >= LANES, x);
        const ptrdiff_t ahead = step * (left - LANES < LANES ? left - LANES : LANES);
        for (ptrdiff_t k = 0; k < ahead; k += 64 / (ptrdiff_t)sizeof(number))
            __builtin_prefetch(from + step * LANES + k);
    } else if (step == 1 && left >= 2 * LANES)
        for (ptrdiff_t k = 0; k < n; ++k) {
            x[k] = *(const unaligned *)(from + across * k);
            __builtin_prefetch(from + across * k + LANES);
        }
    else
        for (ptrdiff_t k = 0; k < n; ++k)
            for (int l = 0; l < LANES; ++l) x[k][l] = from[across * k + step * (l < left ? l : left - 1)];
    return taint;
}

/* LANES outputs of as many states as rows, from output k on; where they are one constant its vector is such a row. */
INLINE void take_rows(vec *t, const vec *o, ptrdiff_t k) {
    for (int l = 0; l < LANES; ++l) t[l] = o[output_places[k + l]];
    if (!are_one[k]) transpose(t);
}

/* The other way: n outputs from `first` on; a row that is 0 is left out. */
static inline void scatter_rows(ptrdiff_t n, const vec *o, ptrdiff_t first, number *const *rows) {
    for (ptrdiff_t k = 0; n >= LANES && k < n; k += LANES) {
        vec t[LANES];
        if (k > n - LANES) k = n - LANES;
        take_rows(t, o, first + k);
        for (int l = 0; l < LANES; ++l)
            if (rows[l]) *(unaligned *)(rows[l] + k) = t[l];
    }
    for (ptrdiff_t k = 0; n < LANES && k < n; ++k)
        for (int l = 0; l < LANES; ++l)
            if (rows[l]) rows[l][k] = o[output_places[first + k]][l];
}

#define STRIP (32 * LANES) /* outputs of a row that are put together before they are written */
#define HAS_STRIPS (sizeof output_places >= STRIP * sizeof *output_places)

/* The same of LANES states whose rows follow each other, past the caches. */
static void stream_rows(ptrdiff_t n, const vec *o, ptrdiff_t first, number *to) {
    vec strip[LANES][STRIP / LANES];
    for (ptrdiff_t k = 0; k < n; k += STRIP) {
        if (k > n - STRIP) k = n - STRIP;
        for (ptrdiff_t b = 0; b < STRIP / LANES; ++b) {
            vec t[LANES];
            take_rows(t, o, first + k + LANES * b);
            for (int l = 0; l < LANES; ++l) strip[l][b] = t[l];
        }
        for (int l = 0; l < LANES; ++l) stream(STRIP, (const number *)strip[l], to + n * l + k);
    }
}

/* The other way: n outputs from `first` on. */
static inline void scatter(ptrdiff_t n, const vec *o, ptrdiff_t first, number *to, ptrdiff_t step, ptrdiff_t across,
                           ptrdiff_t left, int are_many) {
    if (HAS_STRIPS && n >= STRIP && are_many && across == 1 && step == n && left >= LANES) {
        stream_rows(n, o, first, to);
    } else if (across == 1) {
        number *rows[LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = l < left ? to + step * l : 0;
        scatter_rows(n, o, first, rows);
    } else if (step == 1 && left >= LANES)
        for (ptrdiff_t k = 0; k < n; ++k) *(unaligned *)(to + across * k) = o[output_places[first + k]];
    else
        for (ptrdiff_t k = 0; k < n; ++k)
            for (int l = 0; l < LANES && l < left; ++l) to[across * k + step * l] = o[output_places[first + k]][l];
}

/* Zero in the lanes in which n numbers are finite; four sums, as each waits for itself. */
static inline vec taint_of(ptrdiff_t n, const vec *x) {
    vec sums[4] = {{0}};
    ptrdiff_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int l = 0; l < 4; ++l) sums[l] += x[k + l] * 0.0;
    for (; k < n; ++k) sums[0] += x[k] * 0.0;
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Sets the status of the lanes of a mask that have none yet. */
INLINE void note(ivec *status, ivec mask, whole is) { *status |= mask & (*status == OK) & is; }

/* Takes sines and cosines of the angles among the inputs. */
static inline void find_sines(const vec *x, vec *s, vec *c) {
    ivec beyond = {0};
    for (int k = 0; k < N_ANGLES; ++k) {
        reduce(x[angles[k]], s + k, c + k);
        beyond |= ~(MAG(x[angles[k]]) < LARGE_ANGLE);
    }
    for (int k = 0; k < N_ANGLES; ++k) turn(s + k, c + k);
    for (int k = 0; any(beyond) && k < N_ANGLES; ++k)
        turn_far(LANES, (const number *)(x + angles[k]), (number *)(s + k), (number *)(c + k));
}

/* Fetches the inputs of LANES states from one on, brings quaternions to unit length, and takes sines and cosines.
   Returns a status for each lane. */
static inline ivec begin(const batch *at, ptrdiff_t base, vec *x, vec *w) {
    vec taint = {0};
    for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a) {
        const block b = at->blocks[a];
        taint += gather(b.n, (const number *)at->arrays[a] + b.step * base, b.step, b.across, at->n - base, x + first);
    }
    for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a)
        if (at->blocks[a].n < LANES || at->blocks[a].across != 1) taint += taint_of(at->blocks[a].n, x + first);
    ivec status = ~(taint == 0.0) & INPUT_NOT_FINITE;
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        const vec *const q = x + quaternions[k], norm = ROOT(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        note(&status, ~(MAG(norm - 1.0) <= (number)QUATERNION_TOLERANCE), QUATERNION_NOT_UNIT);
        for (int l = 0; l < 4; ++l) w[4 * k + l] = q[l] / norm;
    }
    find_sines(x, w + 4 * N_QUATERNIONS, w + 4 * N_QUATERNIONS + PADDED);
    return status;
}

/* Whether the inputs of LANES states lie in the range of usual states. */
static inline int are_near(const batch *at, const vec *x) {
    const double *const low = at->limits + N_PIVOTS + N_STEPS, *const high = low + N_INPUTS;
    ivec near = ~(ivec){0};
    for (int k = 0; k < N_INPUTS; ++k) near &= (x[k] >= (number)low[k]) & (x[k] <= (number)high[k]);
    return !any(~near);
}

/* Whether each number that is watched is as large as at usual states. */
static inline int are_large(const batch *at, const vec *w) {
    const double *const least = at->limits + N_PIVOTS + N_STEPS + 2 * N_INPUTS;
    ivec large = ~(ivec){0};
    for (int k = 0; k < N_WATCHED; ++k) large &= MAG(w[PIVOTS + N_PIVOTS + k]) >= (number)least[k];
    return !any(~large);
}

/* The lanes in which steps are not small beside their outputs, or beside what these usually are. */
INLINE ivec far(const vec *steps, const vec *o, const double *usual) {
    ivec found = {0};
    for (int k = 0; k < N_STEPS; ++k)
        found |= ~(MAG(steps[k]) <= (number)STEP_LIMIT * (MAG(o[output_places[k]]) + (number)usual[k]));
    return found;
}

/* Gives lanes a status by their weights; returns those in which one is zero. */
INLINE ivec weigh(const vec *x, ivec *status) {
    vec least = (vec){0} + LARGEST, largest = {0};
    ivec negative = {0}, zero = {0};
    for (int k = FIRST_WEIGHT; k < N_INPUTS; ++k) {
        negative |= ~(x[k] >= 0.0);
        zero |= x[k] <= 0.0;
        if (k < FIRST_SENSOR) continue;
        const ivec lighter = (x[k] > 0.0) & (x[k] < least);
        largest = MAX(x[k], largest);
        least = (vec)(((ivec)x[k] & lighter) | ((ivec)least & ~lighter));
    }
    note(status, negative, NEGATIVE_WEIGHT);
    note(status, ~(largest <= (number)LARGEST_SPREAD * least), WEIGHT_SPREAD);
    return zero;
}

/* Checks LANES states from one on and puts away their outputs; returns with how many something is wrong. */
static inline int finish(const batch *at, ptrdiff_t base, ivec status, int usual, const vec *x, vec *w, vec *o) {
    const double *const limits = at->limits;
    const ptrdiff_t n = at->n;
    ivec small = {0}, inaccurate = {0};
    (void)usual;
    vec worst = {0}, taint = {0};
#ifdef MORE_CHUNKS
    const vec *const steps = w + PIVOTS + N_PIVOTS;
    if (!usual && any(far(steps, o, limits + N_PIVOTS))) {
#define CALL(chunk) chunk(x, w, o);
        MORE_CHUNKS(CALL)
#undef CALL
        inaccurate = far(steps + N_STEPS, o, limits + N_PIVOTS);
    }
#endif
    for (int k = 0; k < N_PIVOTS; ++k) small |= ~(MAG(w[PIVOTS + k]) >= (number)limits[k]);
    const ivec strange = ~(taint_of(N_OUTPUTS, o) == 0.0);
    ivec zero = {0}, large = {0};
    if (FIRST_WEIGHT < N_INPUTS) zero = weigh(x, &status);
#ifdef RESIDUAL_LIMIT
    check(x, w, o, &worst, &taint);
    large = ~(worst + taint <= (number)RESIDUAL_LIMIT);
#endif
    const int is_wrong = any(status | small | inaccurate | strange | large);
    if (is_wrong) {
        note(&status, (small | inaccurate | strange) & zero, ZERO_WEIGHT);
        note(&status, small, SMALL_PIVOT);
        note(&status, inaccurate, INACCURATE);
        note(&status, strange, OUTPUT_NOT_FINITE);
        note(&status, large, LARGE_RESIDUAL);
    }
    for (ptrdiff_t a = N_ARRAYS, first = 0; a < N_ARRAYS + at->n_out; first += at->blocks[a].n, ++a) {
        const block b = at->blocks[a];
        scatter(b.n, o, first, (number *)at->arrays[a] + b.step * base, b.step, b.across, n - base,
                BYTES == 64 && ARE_MANY(n, b.n)); /* by shorter vectors it takes as long as without */
    }
    int found = 0;
    for (int l = 0; l < LANES && base + l < n; ++l) {
        at->statuses[base + l] = (int)status[l];
        found += status[l] != OK;
        if (at->residuals) at->residuals[base + l] = worst[l] + taint[l];
    }
    return found;
}

/* How many doubles `run_batch` works in. */
ptrdiff_t n_batch = (ptrdiff_t)GROUPS * LANES * (N_WORK + N_INPUTS + N_OUTPUTS) * sizeof(number) / sizeof(double);

/* Calls a function of statements for some groups of LANES states: the processor fetches its code once. */
#define FOR(chunk, which)            \
    for (int g = 0; g < groups; ++g) \
        if (which) chunk(x + g * N_INPUTS, w + g * N_WORK, o + g * N_OUTPUTS);
#define EACH(chunk) FOR(chunk, !usual[g])
#define USUAL(chunk) FOR(chunk, usual[g])

/* As `solve`, for the states from one, a multiple of LANES, up to another; returns with how many something is wrong. */
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *work) {
    vec *const w = (vec *)work, *const x = w + GROUPS * N_WORK, *const o = x + GROUPS * N_INPUTS;
    ptrdiff_t found = 0;
    int groups = GROUPS, usual[GROUPS] = {0};
    EACH(constants)
    for (ptrdiff_t base = from; base < to; base += GROUPS * LANES) {
        ivec status[GROUPS];
        int others = 0;
        if (to - base < GROUPS * LANES) groups = (int)((to - base + LANES - 1) / LANES);
        for (int g = 0; g < groups; ++g) status[g] = begin(at, base + g * LANES, x + g * N_INPUTS, w + g * N_WORK);
#ifdef USUAL_CHUNKS
        for (int g = 0; g < groups; ++g) usual[g] = are_near(at, x + g * N_INPUTS);
        USUAL_CHUNKS(USUAL)
        for (int g = 0; g < groups; ++g) usual[g] = usual[g] && are_large(at, w + g * N_WORK);
#endif
        for (int g = 0; g < groups; ++g) others |= !usual[g];
        if (others) {
            CHUNKS(EACH)
        }
        for (int g = 0; g < groups; ++g)
            found +=
                finish(at, base + g * LANES, status[g], usual[g], x + g * N_INPUTS, w + g * N_WORK, o + g * N_OUTPUTS);
    }
    STREAMED();
    return found;
}
