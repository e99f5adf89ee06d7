/* One state of a program: its inputs are looked at, its statements run, and guards say whether to trust the outputs.

   The unit says before: N_INPUTS, N_OUTPUTS; N_QUATERNIONS and `quaternions`, which of the inputs their first numbers
   are: the workspace begins with them; N_ANGLES, PADDED and `angles`, those whose sines and cosines are needed, and as
   many again as fill the last vector: they come next. PIVOTS: where statements leave N_PIVOTS pivots, N_STEPS steps of
   refinement, and as many for a second one, or N_WATCHED numbers where USUAL says that the program is for usual states
   only. FIRST_WEIGHT, FIRST_SENSOR: where among the inputs weights begin, and those of sensors. AT(k): where input k is.
   CHUNKS, MORE_CHUNKS: the functions of statements, `constants`, and `check` of the residual. */

#include "program.h"
#include "sines.h"
#include "statuses.h"

#define CALL(chunk) chunk(in, w, out);

/* Whether the inputs can be computed with; writes quaternions at unit length to the workspace. */
static inline int looked_at(const double *in, double *w) {
    uint64_t carry = 0;
    for (int k = 0; k < N_INPUTS; ++k) carry |= carried(in[AT(k)]);
    if (carry >> 63) return INPUT_NOT_FINITE;
    for (int k = 0; k < N_QUATERNIONS; ++k)
        if (!normalise(in + quaternions[k], QUATERNION_TOLERANCE, w + 4 * k)) return QUATERNION_NOT_UNIT;
    return OK;
}

/* Whether weights can be computed with; counts those that are zero. */
static inline int weighed(const double *in, int *zeros) {
    double least = DBL_MAX, largest = 0;
    int negative = 0;
    for (int k = FIRST_WEIGHT; k < FIRST_SENSOR; ++k) {
        negative |= !(in[AT(k)] >= 0);
        *zeros += in[AT(k)] <= 0;
    }
    for (int k = FIRST_SENSOR; k < N_INPUTS; ++k) {
        const double weight = in[AT(k)];
        negative |= !(weight >= 0);
        *zeros += weight <= 0;
        largest = weight > largest ? weight : largest;
        least = weight > 0 && weight < least ? weight : least;
    }
    if (negative) return NEGATIVE_WEIGHT;
    return largest <= LARGEST_SPREAD * least ? OK : WEIGHT_SPREAD;
}

static inline void find_sines(const double *in, double *w) {
    double *const s = w + 4 * N_QUATERNIONS, *const c = s + PADDED;
    uint64_t beyond = 0; /* as wide as a double, for vectors */
    for (int k = 0; k < PADDED; ++k) {
        reduce(in[angles[k]], s + k, c + k);
        beyond |= fabs(in[angles[k]]) < LARGE_ANGLE ? 0 : 1;
    }
    for (int k = 0; k < PADDED; ++k) turn(s + k, c + k);
    for (int k = 0; beyond && k < PADDED; ++k) turn_far(1, in + angles[k], s + k, c + k);
}

/* How many steps are not small beside their outputs, or beside what these usually are. */
static inline int far(const double *steps, const double *out, const double *usual) {
    int count = 0;
    for (int k = 0; k < N_STEPS; ++k) count += !(fabs(steps[k]) <= STEP_LIMIT * (fabs(out[k]) + usual[k]));
    return count;
}

/* Whether each input lies in the range of usual states. */
static inline int are_near(const double *in, const double *low, const double *high) {
    int beyond = 0;
    for (int k = 0; k < N_INPUTS; ++k) beyond |= !(in[k] >= low[k]) | !(in[k] <= high[k]);
    return !beyond;
}

/* Whether each number that is watched is as large as at usual states. */
static inline int are_large(const double *watched, const double *least) {
    int small = 0;
    for (int k = 0; k < N_WATCHED; ++k) small |= !(fabs(watched[k]) >= least[k]);
    return !small;
}

#ifdef USUAL
/* Computes the outputs at a state that is not usual; returns whether to trust them. */
static inline int otherwise(const state *at) {
    if (!at->refined) return NOT_USUAL;
    memcpy(at->refined->w, at->w, 4 * N_QUATERNIONS * sizeof(double));
    return at->refine(at->refined);
}
#endif

/* Computes the outputs, with quaternions from the workspace; returns whether to trust them. */
static inline int computed(const state *at) {
    const double *const in = at->in, *const limits = at->limits, *const usual = limits + N_PIVOTS;
    double *const w = at->w, *const out = at->out;
    int zeros = 0, small = 0;
    (void)usual;
    const int status = weighed(in, &zeros);
    if (status != OK) return status;
#ifdef USUAL
    if (!are_near(in, usual + N_STEPS, usual + N_STEPS + N_INPUTS)) return otherwise(at);
#endif
    find_sines(in, w);
    CHUNKS(CALL)
#ifdef USUAL
    if (!are_large(w + PIVOTS + N_PIVOTS, usual + N_STEPS + 2 * N_INPUTS)) return otherwise(at);
#endif
    for (int k = 0; k < N_PIVOTS; ++k) small += !(fabs(w[PIVOTS + k]) >= limits[k]);
    if (small) return zeros ? ZERO_WEIGHT : SMALL_PIVOT;
#ifdef MORE_CHUNKS
    const double *const steps = w + PIVOTS + N_PIVOTS;
    if (far(steps, out, usual)) { /* refined once more, rarely */
        MORE_CHUNKS(CALL)
        if (far(steps + N_STEPS, out, usual)) return zeros ? ZERO_WEIGHT : INACCURATE;
    }
#endif
    if (!all_finite(N_OUTPUTS, out)) return zeros ? ZERO_WEIGHT : OUTPUT_NOT_FINITE;
    return OK;
}

/* Writes the outputs that no input changes, where the others do not. */
SEEN void prepare(const state *at) { constants(at->in, at->w, at->out); }

/* Computes the outputs, and looks at nothing of the inputs but weights. Returns whether to trust them. */
SEEN int run(const state *at) {
    for (int k = 0; k < N_QUATERNIONS; ++k) memcpy(at->w + 4 * k, at->in + quaternions[k], 4 * sizeof(double));
    return computed(at);
}

#ifndef STAND_ALONE
/* As `run`, for a state that a program for usual states passes on: it has written the quaternions. */
int refine(const state *at) { return computed(at); }
#endif

/* As `run`, with all checks, and quaternions brought to unit length; what is not to be trusted becomes not a number. */
SEEN int solve(state *at) {
    int status = looked_at(at->in, at->w);
    if (status == OK) status = computed(at);
#ifdef RESIDUAL_LIMIT
    if (status == OK) {
        double worst = 0, taint = 0;
        check(at->in, at->w, at->out, &worst, &taint);
        at->residual = worst + taint;
        if (!(at->residual <= RESIDUAL_LIMIT)) status = LARGE_RESIDUAL;
    }
#endif
    if (status != OK) memset(at->out, 0xff, N_OUTPUTS * sizeof(double)); /* all bits set is not a number */
    return status;
}
