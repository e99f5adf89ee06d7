"""What is the same in the C of every job: sine and cosine, and the entries for single states and for batches.

Templates of `str.format`: what varies stands in single braces.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from textwrap import indent

from nori_dyn.program.c_sines import LARGE, QUARTERS, REDUCED, sine_and_cosine

PRELUDE = (
    """\
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#define LANES {lanes}
typedef double vec __attribute__((vector_size(8 * LANES)));
typedef long long ivec __attribute__((vector_size(8 * LANES)));
typedef {real} real;
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ivec){{__VA_ARGS__}})
#endif

/* Statements without a branch need few passes of GCC, and come out the same without the others, which take half of its
   time. What is called at few states need not be quick, but quick to compile. */
#if defined(__GNUC__) && !defined(__clang__)
#define STRAIGHT __attribute__((optimize("O1", "expensive-optimizations", "no-tree-dse", "no-dse")))
#define RARELY __attribute__((cold, optimize("O1")))
#else
#define STRAIGHT
#define RARELY
#endif
#define SMALL static inline __attribute__((always_inline))

SMALL double mag_double(double x) {{ return fabs(x); }}
SMALL vec mag_vec(vec x) {{ return (vec)((ivec)x & 0x7fffffffffffffffLL); }}
SMALL double root_double(double x) {{ return sqrt(x); }}
SMALL vec root_vec(vec x) {{
    for (int l = 0; l < LANES; ++l) x[l] = sqrt(x[l]);
    return x;
}}
SMALL double max_double(double x, double y) {{ return x > y ? x : y; }}
SMALL vec max_vec(vec x, vec y) {{
    const ivec first = x > y;
    return (vec)(((ivec)x & first) | ((ivec)y & ~first));
}}

/* What of numbers is not finite, gathered; and nan where anything is. */
typedef int flag_double;
typedef ivec flag_vec;
SMALL flag_double strange_double(double x) {{ return !(fabs(x) <= DBL_MAX); }}
SMALL flag_vec strange_vec(vec x) {{ return ~(mag_vec(x) <= DBL_MAX); }}
SMALL double taint_double(flag_double strange) {{ return strange ? NAN : 0.0; }}
SMALL vec taint_vec(flag_vec strange) {{ return (vec)(strange & 0x7ff8000000000000LL); }}

/* Whether anything is set in a lane. */
static inline int any(ivec x) {{
    long long found = 0;
    for (int l = 0; l < LANES; ++l) found |= x[l];
    return found != 0;
}}

/* Of LANES angles x = k pi/2 + r with |r| <= pi/4, pi/2 in three parts: r, and k in the last bits of a fraction.
   Returns the lanes that are beyond the reduction, or not a number. */
SMALL ivec reduce(const vec x, vec *r, vec *shifted) {{
"""
    f"    *shifted = x * {QUARTERS} + 0x1.8p52;\n"
    "    const vec k = *shifted - 0x1.8p52;\n"
    f"    *r = {REDUCED};\n"
    f"    return ~(mag_vec(x) < {LARGE});"
    """
}}

/* What `reduce` has left becomes sine and cosine. Many angles are reduced before the first comes here: what waits for
   one another is then half as long, and the processor has twice as many in hand. */
SMALL void turn(vec *s, vec *c) {{
    const vec r = *s;
    const ivec quadrant = (ivec)*c;
""" + indent(sine_and_cosine("vec"), "    ") + """
    const ivec swap = ((ivec)sine ^ (ivec)cosine) & -(quadrant & 1);
    *s = (vec)((ivec)sine ^ swap ^ (quadrant & 2) << 62);
    *c = (vec)((ivec)cosine ^ swap ^ (quadrant + 1 & 2) << 62);
}}

/* Sines and cosines of lanes that are beyond the reduction. */
RARELY static void far_sin_cos(const vec x, vec *s, vec *c) {{
    for (int l = 0; l < LANES; ++l)
"""
    f"        if (!(fabs(x[l]) < {LARGE})) "
    """{{ (*s)[l] = sin(x[l]); (*c)[l] = cos(x[l]); }}
}}
"""
)

SINGLE_ENTRY = """
/* Whether n numbers are finite, by their exponents: one that is all ones carries into the sign. */
static inline int all_finite(int n, const double *x) {{
    unsigned long long carry = 0;
    for (int k = 0; k < n; ++k) {{
        unsigned long long bits;
        memcpy(&bits, x + k, sizeof bits);
        carry |= (bits & 0x7ff0000000000000ULL) + 0x0010000000000000ULL;
    }}
    return !(carry >> 63);
}}

/* in: q, qd, y, weights; w: workspace; out: outputs; limits: smallest size of each pivot, then the usual size of each
   output that has a step of refinement, which must be less than the share step_limit of it; then, where there are usual
   states, their least and largest inputs, and the least size of each number that is watched at them. */
typedef struct {{ double *in, *w, *out; const double *limits; double residual_limit, residual, step_limit; }} state;

/* Writes the outputs that no input changes, where `run` leaves them out. */
void prepare(const state *at) {{ constants(at->in, at->w, at->out); }}

/* How many steps are not small beside their outputs. */
static int far(const double *steps, const double *out, const double *sizes, double limit) {{
    int count = 0;
    for (int k = 0; k < N_STEPS; ++k) count += !(fabs(steps[k]) <= limit * (fabs(out[k]) + sizes[k]));
    return count;
}}

/* Whether each input lies in the range of usual states. */
static int are_near(const double *in, const double *low, const double *high) {{
    int far = 0;
    for (int k = 0; k < N_INPUTS; ++k) far |= !(in[k] >= low[k]) | !(in[k] <= high[k]);
    return !far;
}}

/* Whether each number that is watched is as large as at usual states. */
static int are_large(const double *watched, const double *least) {{
    int small = 0;
    for (int k = 0; k < N_WATCHED; ++k) small |= !(fabs(watched[k]) >= least[k]);
    return !small;
}}

/* Computes the outputs; returns 0 only where pivots, steps and the ratio of weights keep their limits, no weight is
   negative, and all that is returned is finite. */
int run(const state *at) {{
    const double *const in = at->in, *const limits = at->limits, *const sizes = limits + N_PIVOTS;
    double *const w = at->w, *const out = at->out;
    for (int k = 0; k < N_ANGLES; k += LANES) {{
        vec x = {{0}}, s, c;
        for (int l = 0; l < LANES && k + l < N_ANGLES; ++l) x[l] = in[angles[k + l]];
        const ivec beyond = reduce(x, &s, &c);
        turn(&s, &c);
        if (any(beyond)) far_sin_cos(x, &s, &c);
        for (int l = 0; l < LANES && k + l < N_ANGLES; ++l) {{
            w[k + l] = s[l];
            w[N_ANGLES + k + l] = c[l];
        }}
    }}
    int wrong = 0, is_usual = 0;
    if (HAS_FIRST && are_near(in, sizes + N_STEPS, sizes + N_STEPS + N_INPUTS)) {{
{usual_calls}
        is_usual = are_large(w + PIVOTS + N_PIVOTS, sizes + N_STEPS + 2 * N_INPUTS);
    }}
    if (!is_usual) {{
{calls}
        const double *const steps = w + PIVOTS + N_PIVOTS;
        if (N_STEPS && far(steps, out, sizes, at->step_limit)) {{
{more_calls}
            wrong += far(steps + N_STEPS, out, sizes, at->step_limit);
        }}
    }}
    wrong += !all_finite(N_OUTPUTS, out);
    for (int k = 0; k < N_PIVOTS; ++k) wrong += !(fabs(w[PIVOTS + k]) >= limits[k]);
    double least = DBL_MAX, largest = 0;
    for (int k = FIRST_WEIGHT; k < FIRST_SENSOR; ++k) wrong += !(in[k] >= 0);
    for (int k = FIRST_SENSOR; k < N_INPUTS; ++k) {{
        wrong += !(in[k] >= 0);
        largest = in[k] > largest ? in[k] : largest;
        least = in[k] > 0 && in[k] < least ? in[k] : least;
    }}
    return wrong + !(largest <= WEIGHT_SPREAD * least);
}}

/* The relative residual of what `run` left in w and out: the largest of any equation. */
static double residual(const double *in, const double *w, const double *out) {{
    double worst = 0, taint = 0;
{residual_calls}
    return worst + taint;
}}

/* As `run`, with all checks, quaternions brought to unit length first; returns 0 only where nothing is suspicious, and
   REFUSED where nothing was computed, as the inputs are no state. */
int solve(state *at) {{
    if (!all_finite(N_INPUTS, at->in)) return REFUSED;
    for (int k = 0; k < N_QUATERNIONS; ++k) {{
        double *const p = at->in + quaternions[k];
        const double norm = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
        if (!(fabs(norm - 1) <= QUATERNION_TOLERANCE)) return REFUSED;
        for (int l = 0; l < 4; ++l) p[l] /= norm;
    }}
    if (run(at)) return 1;
    if (HAS_RESIDUAL) {{
        at->residual = residual(at->in, at->w, at->out);
        if (!(at->residual <= at->residual_limit)) return 1;
    }}
    return 0;
}}
"""

BATCH_ENTRY = """
typedef vec unaligned __attribute__((aligned(8), may_alias));

/* LANES rows of LANES numbers become columns. */
static inline void transpose(vec *t) {{
{transpose}
}}

/* The numbers of LANES rows as vectors across them. Returns zero in the lanes in which they are finite, where there are
   LANES at least; what is put together number by number is not read again at once. Of shorter rows whole vectors may be
   read where is_long says so. */
static inline vec gather_rows(ptrdiff_t n, const double *const *rows, int is_long, vec *x) {{
    vec taint = {{0}}, more = {{0}};
    if (n < LANES && is_long) {{
        vec t[LANES];
        for (int l = 0; l < LANES; ++l) t[l] = *(const unaligned *)rows[l];
        transpose(t);
        for (ptrdiff_t k = 0; k < n; ++k) x[k] = t[k];
        return taint;
    }}
    for (ptrdiff_t k = 0; n >= LANES && k < n; k += LANES) {{
        vec t[LANES];
        if (k > n - LANES) k = n - LANES; /* the last block overlaps the one before */
        for (int l = 0; l < LANES; ++l) t[l] = *(const unaligned *)(rows[l] + k);
        transpose(t);
        for (int l = 0; l < LANES; ++l) x[k + l] = t[l];
        for (int l = 0; l < LANES; l += 2) {{
            taint += t[l] * 0.0;
            more += t[l + 1] * 0.0;
        }}
    }}
    for (ptrdiff_t k = 0; n < LANES && k < n; ++k)
        for (int l = 0; l < LANES; ++l) x[k][l] = rows[l][k];
    return taint + more;
}}

/* The other way; a row that is 0 is left out. */
static inline void scatter_rows(ptrdiff_t n, const vec *x, double *const *rows) {{
    for (ptrdiff_t k = 0; n >= LANES && k < n; k += LANES) {{
        vec t[LANES];
        if (k > n - LANES) k = n - LANES;
        for (int l = 0; l < LANES; ++l) t[l] = x[k + l];
        transpose(t);
        for (int l = 0; l < LANES; ++l) if (rows[l]) *(unaligned *)(rows[l] + k) = t[l];
    }}
    for (ptrdiff_t k = 0; n < LANES && k < n; ++k)
        for (int l = 0; l < LANES; ++l) if (rows[l]) rows[l][k] = x[k][l];
}}

/* The n numbers of `left` states, or of LANES where there are more, as vectors across them: step lies between states,
   across between the numbers of one. Lanes without a state have the last one. Returns as `gather_rows`. */
static inline vec gather(ptrdiff_t n, const double *from, ptrdiff_t step, ptrdiff_t across, ptrdiff_t left, vec *x) {{
    vec taint = {{0}};
    if (across == 1) {{
        const double *rows[LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = from + step * (l < left ? l : left - 1);
        taint = gather_rows(n, rows, left >= LANES && step * (left - LANES) + n >= LANES, x);
        const ptrdiff_t ahead = step * (left - LANES < LANES ? left - LANES : LANES);
        for (ptrdiff_t k = 0; k < ahead; k += 8) __builtin_prefetch(from + step * LANES + k);
    }} else if (step == 1 && left >= 2 * LANES)
        for (ptrdiff_t k = 0; k < n; ++k) {{
            x[k] = *(const unaligned *)(from + across * k);
            __builtin_prefetch(from + across * k + LANES);
        }}
    else
        for (ptrdiff_t k = 0; k < n; ++k)
            for (int l = 0; l < LANES; ++l) x[k][l] = from[across * k + step * (l < left ? l : left - 1)];
    return taint;
}}

/* The other way. */
static inline void scatter(ptrdiff_t n, const vec *x, double *to, ptrdiff_t step, ptrdiff_t across, ptrdiff_t left) {{
    if (across == 1) {{
        double *rows[LANES];
        for (int l = 0; l < LANES; ++l) rows[l] = l < left ? to + step * l : 0;
        scatter_rows(n, x, rows);
    }} else if (step == 1 && left >= LANES)
        for (ptrdiff_t k = 0; k < n; ++k) *(unaligned *)(to + across * k) = x[k];
    else
        for (ptrdiff_t k = 0; k < n; ++k)
            for (int l = 0; l < LANES && l < left; ++l) to[across * k + step * l] = x[k][l];
}}

/* How an array of a batch lies: how many numbers a state has, what lies between states (0: all have the same), and
   between the numbers of one. */
typedef struct {{ ptrdiff_t n, step, across; }} block;

/* n states: where inputs and, after them, n_out arrays of outputs are, how they lie, and what is wrong with each state,
   as `solve` returns it; residuals may be none. */
typedef struct {{
    ptrdiff_t n, n_out;
    double *const *arrays;
    const block *blocks;
    const double *limits;
    double residual_limit, step_limit, *residuals;
    int *wrong;
}} batch;

/* Zero in the lanes in which n numbers are finite; four sums, as each waits for itself. */
static inline vec taint_of(ptrdiff_t n, const vec *x) {{
    vec sums[4] = {{{{0}}}};
    ptrdiff_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int l = 0; l < 4; ++l) sums[l] += x[k + l] * 0.0;
    for (; k < n; ++k) sums[0] += x[k] * 0.0;
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}}

/* Fetches the inputs of LANES states from one on, brings quaternions to unit length, and takes sines and cosines.
   Returns the lanes that have no state to compute with. */
static inline ivec begin(const batch *at, ptrdiff_t base, vec *x, vec *w) {{
    vec taint = {{0}};
    for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a) {{
        const block b = at->blocks[a];
        taint += gather(b.n, at->arrays[a] + b.step * base, b.step, b.across, at->n - base, x + first);
    }}
    for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a)
        if (at->blocks[a].n < LANES || at->blocks[a].across != 1) taint += taint_of(at->blocks[a].n, x + first);
    ivec refused = ~(taint == 0.0), beyond = {{0}};
    for (int k = 0; k < N_QUATERNIONS; ++k) {{
        vec *const p = x + quaternions[k], norm = ROOT(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
        refused |= ~(MAG(norm - 1.0) <= QUATERNION_TOLERANCE);
        for (int l = 0; l < 4; ++l) p[l] /= norm;
    }}
    for (int k = 0; k < N_ANGLES; ++k) beyond |= reduce(x[angles[k]], w + k, w + N_ANGLES + k);
    for (int k = 0; k < N_ANGLES; ++k) turn(w + k, w + N_ANGLES + k);
    if (any(beyond))
        for (int k = 0; k < N_ANGLES; ++k) far_sin_cos(x[angles[k]], w + k, w + N_ANGLES + k);
    return refused;
}}

/* Whether the inputs of LANES states lie in the range of usual states. */
static inline int are_near(const batch *at, const vec *x) {{
    const double *const low = at->limits + N_PIVOTS + N_STEPS, *const high = low + N_INPUTS;
    ivec near = ~(ivec){{0}};
    for (int k = 0; k < N_INPUTS; ++k) near &= (x[k] >= low[k]) & (x[k] <= high[k]);
    return !any(~near);
}}

/* Whether each number that is watched is as large as at usual states. */
static inline int are_large(const batch *at, const vec *w) {{
    const double *const least = at->limits + N_PIVOTS + N_STEPS + 2 * N_INPUTS;
    ivec large = ~(ivec){{0}};
    for (int k = 0; k < N_WATCHED; ++k) large &= mag_vec(w[PIVOTS + N_PIVOTS + k]) >= least[k];
    return !any(~large);
}}

/* Checks LANES states from one on and puts away their outputs; returns with how many something is wrong. */
static inline int finish(const batch *at, ptrdiff_t base, ivec refused, int usual, const vec *x, vec *w, vec *o) {{
    const double *const limits = at->limits, *const sizes = limits + N_PIVOTS, step_limit = at->step_limit;
    const ptrdiff_t n = at->n;
    ivec count = {{0}}, again = {{0}};
    const vec *const steps = w + PIVOTS + N_PIVOTS;
    for (int k = 0; !usual && k < N_STEPS; ++k)
        again -= ~(mag_vec(steps[k]) <= step_limit * (mag_vec(o[k]) + sizes[k]));
    if (any(again)) {{
{more_calls}
        for (int k = 0; k < N_STEPS; ++k)
            count -= ~(mag_vec(steps[N_STEPS + k]) <= step_limit * (mag_vec(o[k]) + sizes[k]));
    }}
    count -= ~(taint_of(N_OUTPUTS, o) == 0.0);
    for (int k = 0; k < N_PIVOTS; ++k) {{
        const vec p = w[PIVOTS + k];
        count -= ~((p >= limits[k]) | (-p >= limits[k]));
    }}
    vec least = (vec){{0}} + DBL_MAX, largest = {{0}};
    for (int k = FIRST_WEIGHT; k < FIRST_SENSOR; ++k) count -= ~(x[k] >= 0.0);
    for (int k = FIRST_SENSOR; k < N_INPUTS; ++k) {{
        const ivec lighter = (x[k] > 0.0) & (x[k] < least);
        count -= ~(x[k] >= 0.0);
        largest = MAX(x[k], largest);
        least = (vec)(((ivec)x[k] & lighter) | ((ivec)least & ~lighter));
    }}
    count -= ~(largest <= WEIGHT_SPREAD * least);
    vec worst = {{0}}, taint = {{0}};
{residual_calls}
    for (ptrdiff_t a = N_ARRAYS, first = 0; a < N_ARRAYS + at->n_out; first += at->blocks[a].n, ++a) {{
        const block b = at->blocks[a];
        scatter(b.n, o + first, at->arrays[a] + b.step * base, b.step, b.across, n - base);
    }}
    if (HAS_RESIDUAL) count -= ~(worst + taint <= at->residual_limit);
    int found = 0;
    for (int l = 0; l < LANES && base + l < n; ++l) {{
        const int wrong = refused[l] ? REFUSED : (int)count[l];
        at->wrong[base + l] = wrong;
        found += wrong != 0;
        if (at->residuals) at->residuals[base + l] = worst[l] + taint[l];
    }}
    return found;
}}

/* How many doubles `run_batch` works in. */
const ptrdiff_t n_batch = (ptrdiff_t)GROUPS * LANES * (N_WORK + N_INPUTS + N_OUTPUTS);

/* Calls a function of statements for some groups of LANES states: the processor fetches its code once. */
#define FOR(chunk, which) for (int g = 0; g < groups; ++g) if (which) \\
    chunk(x + g * N_INPUTS, w + g * N_WORK, o + g * N_OUTPUTS)
#define EACH(chunk) FOR(chunk, !usual[g])
#define USUAL(chunk) FOR(chunk, usual[g])

/* As `solve`, for the states from one, a multiple of LANES, up to another; returns with how many something is wrong. */
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, vec *w) {{
    vec *const x = w + GROUPS * N_WORK, *const o = x + GROUPS * N_INPUTS;
    ptrdiff_t found = 0;
    int groups = GROUPS, usual[GROUPS] = {{0}};
    EACH(constants);
    for (ptrdiff_t base = from; base < to; base += GROUPS * LANES) {{
        ivec refused[GROUPS];
        if (to - base < GROUPS * LANES) groups = (int)((to - base + LANES - 1) / LANES);
        for (int g = 0; g < groups; ++g)
            refused[g] = begin(at, base + g * LANES, x + g * N_INPUTS, w + g * N_WORK);
        for (int g = 0; g < groups; ++g) usual[g] = HAS_FIRST && are_near(at, x + g * N_INPUTS);
{usual_calls}
        int others = 0;
        for (int g = 0; g < groups; ++g) others |= !(usual[g] = usual[g] && are_large(at, w + g * N_WORK));
        if (others) {{
{calls}
        }}
        for (int g = 0; g < groups; ++g)
            found += finish(at, base + g * LANES, refused[g], usual[g], x + g * N_INPUTS, w + g * N_WORK,
                            o + g * N_OUTPUTS);
    }}
    return found;
}}
"""
