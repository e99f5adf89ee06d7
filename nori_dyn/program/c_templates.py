"""What is the same in the C of every job: sine and cosine, and the entries for single states.

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

STATE = (
    "typedef struct { double *in, *w, *out; const double *limits; double residual_limit, residual, step_limit; } state;"
)
"""What `run` and `solve` take."""

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
{state}

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
