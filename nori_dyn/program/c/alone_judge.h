/* The judgement of one state, of exported code. The unit says before, beside what its statements need, what judge.h
   wants. What is judged is, one after the other: standard deviations of the outputs; residuals, their spreads, and each
   residual over its spread; chi-square and p-value. */

#include "judge.h"

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

/* Writes what is found, and looks whether rounding spoils it; the workspace has N_INPUTS and N_DEVIATIONS numbers more. */
static int variances(const double *in, double *w, double *out) {
    double *const scaled = w + N_WORK, *const again = scaled + N_INPUTS;
    const state at = {scaled, w, out, again, 0, 0, 0};
    int zeros = 0, status = looked_at(in, w);
    if (status == OK) status = weighed(in, &zeros);
    if (status == OK && zeros) status = ZERO_WEIGHT;
    memcpy(scaled, in, N_INPUTS * sizeof(double));
    for (int turn = 0; status == OK && turn < 2; ++turn) {
        for (int k = FIRST_WEIGHT; k < N_INPUTS; ++k) scaled[k] = turn ? in[k] : SCALE * in[k];
        status = computed(&at);
        if (!turn) memcpy(again, out, N_DEVIATIONS * sizeof(double));
    }
    return status == OK ? agree(in + FIRST_WEIGHT, again, out) : status;
}

/* What is found becomes what is judged. Returns whether that is finite. */
static int diagnosed(const double *weights, double *out) {
    double *const residuals = out + N_DEVIATIONS, *const spreads = residuals + N_READINGS;
    double *const normalised = spreads + N_READINGS, *const whole = normalised + N_READINGS;
    for (int k = 0; k < N_DEVIATIONS; ++k) out[k] = deviation(out[k]);
    for (int k = 0; k < N_READINGS; ++k) {
        spreads[k] = sqrt(left_over(weights[weight_of[k]], spreads[k]));
        normalised[k] = spreads[k] > 0 ? residuals[k] / spreads[k] : 0;
    }
    whole[0] = chi_square(weights, residuals);
    whole[1] = tail(whole[0], N_READINGS - N_NEEDED);
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
