/* What the uncertainty of a state says of its outputs, and whether its readings fit together.

   The unit says before, beside the includes: N_READINGS, the weighed readings, and `weight_of`, which
   weight each has; N_DEVIATIONS, the numbers of N_FIELDS outputs, and `fields`, how many each has; N_NEEDED, how many
   readings the estimate needs; SCALE, DRIFT, FLOOR, ROUNDING, CRITICAL. What was found of a state is, one after the
   other: the variances of the outputs; the residuals; the variances along the readings. */

static double larger(double most, double x) { return fabs(x) > most ? fabs(x) : most; }

/* Whether rounding spoils what was found. `again` are the variances of the outputs by weights that are SCALE times as
   large, which round otherwise. */
static int agree(const double *weights, const double *again, const double *found) {
    const double *const explained = found + N_DEVIATIONS + N_READINGS;
    double shares = 0, all = 0; /* of the readings in the estimate: they add up to the number that it needs */
    for (int k = 0; k < N_READINGS; ++k) shares += weights[weight_of[k]] * explained[k];
    for (int k = 0; k < N_DEVIATIONS; ++k) all = larger(all, found[k]);
    if (!(fabs(shares - N_NEEDED) <= ROUNDING * N_NEEDED)) return INACCURATE;
    for (int k = 0, first = 0; k < N_FIELDS; first += fields[k], ++k) {
        double off = 0, most = 0;
        for (int l = first; l < first + fields[k]; ++l) {
            off = larger(off, SCALE * again[l] - found[l]);
            most = larger(most, found[l]);
        }
        if (!(off <= DRIFT * most + FLOOR * all)) return INACCURATE;
    }
    return OK;
}

/* The standard deviation of a number with a variance, which rounding may take below zero. */
static double deviation(double variance) { return variance > 0 ? sqrt(variance) : 0; }

/* The variance of a residual of sound sensors: the sensor's less that along the reading; 0 where nothing else checks it. */
static double left_over(double weight, double explained) {
    const double left = 1 / weight - explained;
    return left > CRITICAL / weight ? left : 0;
}

/* The sum of squared residuals, each times its weight. */
static double chi_square(const double *weights, const double *residuals) {
    double sum = 0;
    for (int k = 0; k < N_READINGS; ++k) sum += weights[weight_of[k]] * residuals[k] * residuals[k];
    return sum;
}
