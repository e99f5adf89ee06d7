/* What the outputs of a state are worth, and whether its readings fit together.

   The unit says before, beside what its statements need: N_READINGS, the weighed readings, and `weight_of`, which
   weight each has; N_DEVIATIONS, the numbers of N_FIELDS outputs, and `fields`, how many each has; N_NEEDED, how many
   readings the estimate needs; SCALE, DRIFT, FLOOR, ROUNDING, CRITICAL. Its outputs are the variances of the outputs,
   the residuals, and the variances along the readings. What is judged is, one after the other: standard deviations of
   the outputs; residuals, their spreads, and each residual over its spread; chi-square and p-value. */

#define N_JUDGED (N_DEVIATIONS + 3 * N_READINGS + 2)

/* The probability that a chi-square of n degrees of freedom is above x: a finite sum, as n is whole. */
static double tail(double x, int n) {
    const int odd = n % 2;
    const double h = 0.5 * x;
    double term = odd ? 1.1283791670955126 * sqrt(h) : 1.0, sum = 0, exponent = -h;
    if (!n) return 1;
    if (h > 1e8) return 0;
    for (int k = 0; k < n / 2; ++k) {
        sum += term;
        term *= h / (k + 1 + 0.5 * odd);
        if (sum > 1e200) { /* before it overflows */
            sum *= 1e-200;
            term *= 1e-200;
            exponent += 460.51701859880916;
        }
    }
    const double p = (odd ? erfc(sqrt(h)) : 0.0) + (sum > 0 ? exp(log(sum) + exponent) : 0.0);
    return p < 1 ? p : 1;
}

/* The largest size of n numbers. */
static double largest_of(const double *x, int n) {
    double largest = 0;
    for (int k = 0; k < n; ++k) largest = fabs(x[k]) > largest ? fabs(x[k]) : largest;
    return largest;
}

/* Writes variances, and looks whether rounding spoils them; the workspace has N_INPUTS and N_DEVIATIONS numbers more. */
static int variances(const double *in, double *w, double *out) {
    const double *const weights = in + FIRST_WEIGHT, *const explained = out + N_DEVIATIONS + N_READINGS;
    double *const scaled = w + N_WORK, *const before = scaled + N_INPUTS;
    const state at = {scaled, w, out, before, 0, 0, 0};
    int zeros = 0, status = looked_at(in, w);
    if (status == OK) status = weighed(in, &zeros);
    if (status == OK && zeros) status = ZERO_WEIGHT;
    /* With weights that are SCALE times as large first, which rounds otherwise, to know what rounding does. */
    memcpy(scaled, in, N_INPUTS * sizeof(double));
    for (int turn = 0; status == OK && turn < 2; ++turn) {
        for (int k = FIRST_WEIGHT; k < N_INPUTS; ++k) scaled[k] = turn ? in[k] : SCALE * in[k];
        status = computed(&at);
        for (int k = 0; !turn && k < N_DEVIATIONS; ++k) before[k] = SCALE * out[k];
    }
    if (status != OK) return status;
    double shares = 0; /* of the readings in the estimate: they add up to the number that it needs */
    for (int k = 0; k < N_READINGS; ++k) shares += weights[weight_of[k]] * explained[k];
    if (!(fabs(shares - N_NEEDED) <= ROUNDING * N_NEEDED)) return INACCURATE;
    const double all = largest_of(out, N_DEVIATIONS);
    for (int k = 0; k < N_DEVIATIONS; ++k) before[k] -= out[k];
    for (int k = 0, first = 0; k < N_FIELDS; first += fields[k], ++k)
        if (!(largest_of(before + first, fields[k]) <= DRIFT * largest_of(out + first, fields[k]) + FLOOR * all))
            return INACCURATE;
    return OK;
}

/* Variances become what is judged. Returns whether that is finite. */
static int diagnosed(const double *weights, double *out) {
    double *const residuals = out + N_DEVIATIONS, *const spreads = residuals + N_READINGS;
    double *const normalised = spreads + N_READINGS, *const chi_square = normalised + N_READINGS;
    *chi_square = 0;
    for (int k = 0; k < N_DEVIATIONS; ++k) out[k] = out[k] > 0 ? sqrt(out[k]) : 0;
    for (int k = 0; k < N_READINGS; ++k) {
        const double weight = weights[weight_of[k]], left = 1 / weight - spreads[k];
        const int is_checked = left > CRITICAL / weight;
        spreads[k] = is_checked ? sqrt(left) : 0;
        normalised[k] = is_checked ? residuals[k] / spreads[k] : 0;
        *chi_square += weight * residuals[k] * residuals[k];
    }
    chi_square[1] = tail(*chi_square, N_READINGS - N_NEEDED);
    return all_finite(N_JUDGED, out) ? OK : OUTPUT_NOT_FINITE;
}

/* Judges one state. Returns whether to trust what it writes, which is not a number where that is not so. */
static int judge(const double *in, double *w, double *out) {
    int status = variances(in, w, out);
    if (status == OK) status = diagnosed(in + FIRST_WEIGHT, out);
    if (status != OK) memset(out, 0xff, N_JUDGED * sizeof(double)); /* all bits set is not a number */
    return status;
}

/* The reading whose residual is the largest over its spread. */
static int suspect(const double *out) {
    const double *const normalised = out + N_DEVIATIONS + 2 * N_READINGS;
    int worst = 0;
    for (int k = 1; k < N_READINGS; ++k)
        if (fabs(normalised[k]) > fabs(normalised[worst])) worst = k;
    return worst;
}
