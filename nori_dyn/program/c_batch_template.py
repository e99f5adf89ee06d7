"""What is the same in the C of every job for batches: vectors with one state in each lane, or state by state.

Templates of `str.format`: what varies stands in single braces.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

BATCH = """
/* How an array of a batch lies: how many numbers a state has, what lies between states (0: all have the same), and
   between the numbers of one. */
typedef struct { ptrdiff_t n, step, across; } block;

/* n states: where inputs and, after them, n_out arrays of outputs are, how they lie, and what is wrong with each state,
   as `solve` returns it; residuals may be none. */
typedef struct {
    ptrdiff_t n, n_out;
    double *const *arrays;
    const block *blocks;
    const double *limits;
    double residual_limit, step_limit, *residuals;
    int *wrong;
} batch;
"""
"""What `run_batch` takes."""

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

{structs}
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

STATES_ENTRY = """
{structs}
/* How many doubles `run_batch` works in: whole vectors, so that each thread's begin with one. */
const ptrdiff_t n_batch = (N_WORK + N_INPUTS + N_OUTPUTS + LANES - 1) / LANES * LANES;

/* As `solve`, for the states from one up to another; returns with how many something is wrong. */
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w) {{
    double *const in = w + N_WORK, *const out = in + N_INPUTS;
    state one = {{in, w, out, at->limits, at->residual_limit, 0, at->step_limit}};
    ptrdiff_t found = 0;
    prepare(&one);
    for (ptrdiff_t s = from; s < to; ++s) {{
        for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a) {{
            const block b = at->blocks[a];
            const double *const own = at->arrays[a] + b.step * s;
            for (ptrdiff_t k = 0; k < b.n; ++k) in[first + k] = own[b.across * k];
        }}
        at->wrong[s] = solve(&one);
        found += at->wrong[s] != 0;
        if (at->residuals) at->residuals[s] = one.residual;
        for (ptrdiff_t a = N_ARRAYS, first = 0; a < N_ARRAYS + at->n_out; first += at->blocks[a].n, ++a) {{
            const block b = at->blocks[a];
            double *const own = at->arrays[a] + b.step * s;
            for (ptrdiff_t k = 0; k < b.n; ++k) own[b.across * k] = out[first + k];
        }}
    }}
    return found;
}}
"""
"""After the entries for single states: batches of programs that take less time with their rows than across states."""
