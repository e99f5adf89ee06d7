/* The Kalman filter of textbooks, with dense matrices of fixed size: K numbers of the state, M of the measurement. */
#include <math.h>
/* x+ = F x, P+ = F P F' + Q; then measurements z = H x + noise of unit variance. */
static double A[K * K], S[M * M], G[M * K], e[M];
void kalman(const double *restrict F, const double *restrict Q, const double *restrict H, const double *restrict z,
            double *restrict x, double *restrict P) {
    double y[K];
    for (int i = 0; i < K; ++i) { y[i] = 0; for (int j = 0; j < K; ++j) y[i] += F[i * K + j] * x[j]; }
    for (int i = 0; i < K; ++i) {
        for (int j = 0; j < K; ++j) A[i * K + j] = 0;
        for (int l = 0; l < K; ++l) for (int j = 0; j < K; ++j) A[i * K + j] += F[i * K + l] * P[l * K + j];
    }
    for (int i = 0; i < K; ++i)
        for (int j = 0; j < K; ++j) {
            double sum = i == j ? Q[i] : 0;
            for (int l = 0; l < K; ++l) sum += A[i * K + l] * F[j * K + l];
            P[i * K + j] = sum;
        }
    for (int i = 0; i < M; ++i) {
        for (int j = 0; j < K; ++j) G[i * K + j] = 0;
        for (int l = 0; l < K; ++l) for (int j = 0; j < K; ++j) G[i * K + j] += H[i * K + l] * P[l * K + j];
        e[i] = z[i];
        for (int l = 0; l < K; ++l) e[i] -= H[i * K + l] * y[l];
    }
    for (int i = 0; i < M; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = i == j;
            for (int l = 0; l < K; ++l) sum += G[i * K + l] * H[j * K + l];
            S[i * M + j] = sum;
        }
    for (int j = 0; j < M; ++j) { /* S = L L', G := L^-1 G, e := L^-1 e */
        for (int l = 0; l < j; ++l) S[j * M + j] -= S[j * M + l] * S[j * M + l];
        const double pivot = sqrt(S[j * M + j]), inverse = 1 / pivot;
        S[j * M + j] = pivot;
        for (int i = j + 1; i < M; ++i) {
            for (int l = 0; l < j; ++l) S[i * M + j] -= S[i * M + l] * S[j * M + l];
            S[i * M + j] *= inverse;
        }
        for (int l = 0; l < j; ++l) {
            for (int c = 0; c < K; ++c) G[j * K + c] -= S[j * M + l] * G[l * K + c];
            e[j] -= S[j * M + l] * e[l];
        }
        for (int c = 0; c < K; ++c) G[j * K + c] *= inverse;
        e[j] *= inverse;
    }
    for (int i = 0; i < K; ++i) { x[i] = y[i]; for (int l = 0; l < M; ++l) x[i] += G[l * K + i] * e[l]; }
    for (int l = 0; l < M; ++l)
        for (int i = 0; i < K; ++i) for (int j = 0; j < K; ++j) P[i * K + j] -= G[l * K + i] * G[l * K + j];
}
