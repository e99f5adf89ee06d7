/* What trackers that stand alone have in common: all that one knows lies in a struct of its user.

   The unit says before, beside what a tick needs: FILTER, the struct, and OUTPUTS, that of the outputs; COMPUTE_ROWS and
   COMPUTE_OUTPUTS, the straight-line programs; LONGEST, the longest time over which rates are known; N_WEIGHTS; AT(k):
   where input k is; N_QUATERNIONS and `quaternions`, which of the inputs their first numbers are. first_root, first_z:
   of what is known at first, one over each standard deviation, and the mean times that. free_places: which of all that
   is free, in any contact state, each number of u is. */

#include "checks.h"
#include "program.h"
#include "statuses.h"
#ifdef BASE
#include "base.h"
#endif

/* x becomes R^-1 x, for n rows; 0 where a pivot vanishes. */
static void solve_back(int n, const double *R, double *x) {
    for (int i = n; i-- > 0;) {
        const double pivot = R[i * WIDTH + i];
        for (int l = i + 1; l < n; ++l) x[i] -= R[i * WIDTH + l] * x[l];
        x[i] = pivot ? x[i] / pivot : 0;
    }
}

/* The estimate of the memory and its standard deviations; what is not determined is 0, with a deviation of infinity. */
static void recall(const FILTER *of, const double *work, double *mean, double *deviations) {
    const double *const R = work + N_S * WIDTH + N_S;
    double column[K];
    int lost = 0;
#ifdef BASE
    const double *const axes = ((const base *)of->base)->R;
#else
    (void)of;
#endif
    for (int i = 0; i < K; ++i) {
        mean[i] = R[i * WIDTH + K];
        deviations[i] = 0;
    }
    solve_back(K, R, mean);
#ifdef BASE
    to_base(axes, mean);
#endif
    for (int j = 0; j < K; ++j) {
        if (!R[j * WIDTH + j]) {
            ++lost;
            continue;
        }
        for (int i = 0; i < K; ++i) column[i] = i == j;
        solve_back(j + 1, R, column);
#ifdef BASE
        to_base(axes, column);
#endif
        for (int i = 0; i < K; ++i) deviations[i] += column[i] * column[i];
    }
    for (int i = 0; i < K; ++i) deviations[i] = sqrt(deviations[i]);
    if (lost) {
        blot(K, R, column, mean, 0);
        blot(K, R, column, deviations, INFINITY);
    }
}

static int run_rows(const void *at) {
    const state *const it = (const state *)at;
    return COMPUTE_ROWS(it->in, it->w, it->out);
}

static int no_rows(const void *at) {
    (void)at;
    return 1;
}

static int run_outputs(const void *at) {
    const state *const it = (const state *)at;
    return COMPUTE_OUTPUTS(it->in, it->w, it->out);
}

/* Where the numbers of contact state h, of those that are judged are, for the steps. */
static filter steps_of(FILTER *of, int h) {
    const filter found = {.known = {of->R + h * K * K, of->z + h * K},
                          .A = of->entries,
                          .c = of->entries + N_A,
                          .X = of->entries + N_A + P,
                          .x = of->entries + N_A + P + N_X,
                          .weights = of->weights,
                          .decay = of->decay,
                          .Q = of->Q,
                          .u = of->u + h * N,
                          .pivots = of->pivots + h * N,
                          .work = of->work + h * N_WORK};
    return found;
}

static void begin_known(FILTER *of) {
    filter first = steps_of(of, 0);
    memset(of, 0, sizeof *of);
    for (int i = 0; i < K; ++i) {
        of->R[K * i + i] = first_root[i];
        of->z[i] = first_z[i];
    }
    put_known(&first, 0);
    of->last = of->lost = -1;
#ifdef BASE
    begin_base(of);
#endif
}

/* Takes a state, its quaternions of unit length. Returns whether it is one. */
static int taken(FILTER *of, const double *in) {
    const int n = N_STATE + N_WEIGHTS;
    double *const to = of->state;
    for (int k = 0; k < n; ++k) to[k] = in[AT(k)];
#ifdef BASE
    write_base(of, to);
#endif
    if (!all_finite(n, to)) return INPUT_NOT_FINITE;
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        double *const q = to + quaternions[k];
        if (!normalise(q, QUATERNION_TOLERANCE, q)) return QUATERNION_NOT_UNIT;
    }
    for (int k = N_STATE; k < n; ++k)
        if (!(to[k] >= 0)) return NEGATIVE_WEIGHT;
    return OK;
}

/* The reason of a status, by what a tick returns. */
static const int reasons[] = {OK, OUTPUT_NOT_FINITE, UNDETERMINED, SMALL_PIVOT};

#ifdef LAG
/* Of a tick the outputs are wanted when it is late. */
static int write_outputs(const void *at) {
    (void)at;
    return 0;
}
#else
#define write_outputs run_outputs
#endif

/* A tick whose state was taken, or which is none; its programs run on `rows` and `outputs`. */
static tick tick_of(FILTER *of, filter *steps, const state *rows, const state *outputs, int is_taken, int has_rates) {
    const tick found = {.steps = steps,
                        .rows = is_taken ? run_rows : no_rows,
                        .outputs = write_outputs,
                        .rows_at = rows,
                        .outputs_at = outputs,
                        .go_on = go_on,
                        .state = of->state,
                        .free = of->free,
                        .totals = of->totals,
                        .dt = of->dt,
                        .longest = LONGEST,
                        .has_rates = has_rates};
    return found;
}

/* Tells what a tick has found, whose state was taken with a status, by its best steps, which return `wrong`. Returns
   whether it has an estimate; what it writes is not a number where it has none. */
static int told(FILTER *of, const filter *best, int status, int wrong, OUTPUTS *out) {
    if (status == OK) status = reasons[wrong];
#ifdef BASE
    take_base(of, best, wrong);
#endif
    of->lost = -1;
    for (int j = N; status == UNDETERMINED && j-- > 0;)
        if (best->pivots[j] == 0) of->lost = free_places[j];
    if (status != OK) {
        memset(out, 0xff, sizeof *out); /* all bits set is not a number */
        return status;
    }
    memcpy(out->memory, best->u + N_S, sizeof out->memory);
#ifdef BASE
    tell_base(((const base *)of->base)->R, ((const base *)of->base)->pose, out->memory, out->base);
#endif
    out->nis = best->nis;
    out->degrees = best->degrees;
    out->log_likelihood = best->log_likelihood;
    return OK;
}
