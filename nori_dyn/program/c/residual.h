/* The residual of D d + b = 0: for each of N_EQUATIONS the largest |D d + b| of its rows, relative to the largest sum of
   the sizes of their terms. `terms` has the places of numbers, row by row: those of rows that are alike follow each
   other, and ROWS loops over each kind. */

/* r: what the terms of a row add up to; m: what their sizes do. */
#define LOOP(n_rows, step, ...)                    \
    for (int k = 0; k < n_rows; ++k, at += step) { \
        __VA_ARGS__                                \
        error[at[0]] = MAX(MAG(r), error[at[0]]);  \
        size[at[0]] = MAX(m, size[at[0]]);         \
        strange |= STRANGE(m);                     \
    }

/* Leaves the largest ratio in `worst`, and not a number in `taint` where a term is not finite. */
STRAIGHT static void check(const real *restrict in, const real *restrict w, const real *restrict out, real *worst,
                           real *taint) {
    real error[N_EQUATIONS], size[N_EQUATIONS], r, m, p;
    flag strange = (flag){0};
    const place *at = terms;
    for (int k = 0; k < N_EQUATIONS; ++k) {
        error[k] = (real){0};
        size[k] = (real){0} + SMALLEST;
    }
    ROWS(LOOP)
    for (int k = 0; k < N_EQUATIONS; ++k) *worst = MAX(error[k] / size[k], *worst);
    *taint = TAINT(strange);
    (void)in;
    (void)w;
}
