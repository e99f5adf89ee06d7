#include "tick.h"

/* x becomes R^-1 x, for n rows; 0 where a pivot vanishes. */
static void solve_back(int n, const double *R, double *x) {
    for (int i = n; i-- > 0;) {
        const double pivot = R[i * WIDTH + i];
        for (int l = i + 1; l < n; ++l) x[i] -= R[i * WIDTH + l] * x[l];
        x[i] = pivot ? x[i] / pivot : 0;
    }
}

/* The estimate of the memory and its standard deviations; what is not determined is 0, with a deviation of infinity. */
static void recall(const double *work, double *mean, double *deviations) {
    const double *const R = work + N_S * WIDTH + N_S;
    double column[K];
    int lost = 0;
    for (int i = 0; i < K; ++i) {
        mean[i] = R[i * WIDTH + K];
        deviations[i] = 0;
    }
    solve_back(K, R, mean);
    for (int j = 0; j < K; ++j) {
        if (!R[j * WIDTH + j]) {
            ++lost;
            continue;
        }
        for (int i = 0; i <= j; ++i) column[i] = i == j;
        solve_back(j + 1, R, column);
        for (int i = 0; i <= j; ++i) deviations[i] += column[i] * column[i];
    }
    for (int i = 0; i < K; ++i) deviations[i] = sqrt(deviations[i]);
    if (lost) {
        blot(K, R, column, mean, 0);
        blot(K, R, column, deviations, INFINITY);
    }
}
