/* The judgement of a batch: what was found of its states becomes what is judged. The unit says before what judge.h wants.

   Arrays that are read, whose numbers lie side by side: the weights, above zero; what is found by weights that are SCALE
   times as large; what is found. Arrays that are written: standard deviations of the outputs; the residuals; their
   spreads, not a number where nothing else checks the reading; chi-square. Of a state whose status is not OK they say
   nothing. */

#include <stddef.h>

#include "program.h"
#include "statuses.h"
#include "checks.h"
#include "judge.h"

static double *row(const batch *at, int array, ptrdiff_t state) {
    return (double *)at->arrays[array] + at->blocks[array].step * state;
}

static int judge(const batch *at, ptrdiff_t state) {
    const double *const weights = row(at, 0, state), *const again = row(at, 1, state), *const found = row(at, 2, state);
    const double *const innovations = found + N_DEVIATIONS, *const explained = innovations + N_READINGS;
    double *const deviations = row(at, 3, state), *const residuals = row(at, 4, state),
                  *const spreads = row(at, 5, state);
    if (!all_finite(N_DEVIATIONS + 2 * N_READINGS, found) || !all_finite(N_DEVIATIONS, again)) return OUTPUT_NOT_FINITE;
    for (int k = 0; k < N_DEVIATIONS; ++k) deviations[k] = deviation(found[k]);
    for (int k = 0; k < N_READINGS; ++k) {
        const double left = left_over(weights[weight_of[k]], explained[k]);
        residuals[k] = innovations[k];
        spreads[k] = left > 0 ? sqrt(left) : (double)NAN;
    }
    *row(at, 6, state) = chi_square(weights, innovations);
    return agree(weights, again, found);
}

ptrdiff_t n_batch = 0; /* a thread needs no room to work */

/* Judges the states from one up to another; returns with how many something is wrong. */
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *work) {
    ptrdiff_t wrong = 0;
    (void)work;
    for (ptrdiff_t k = from; k < to; ++k) wrong += (at->statuses[k] = judge(at, k)) != OK;
    return wrong;
}
