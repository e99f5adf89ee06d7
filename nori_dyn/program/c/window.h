#include "tick.h"

/* What a step back to a tick needs, once time has gone on from it: rows of [s | m'], m' what m+ would be without noise;
   v = scale (v' - rates [s | m' | -1]), f = scale f'; what is known of m+ by then; m' = m+ - walk e, with
   e = gain (R m+ - z) + spread n, n of unit variance. Gain and spread lie column by column. Whether all of that is so:
   it is not where something vanishes, or the motion is not known. Through a gap f alone comes back: of s and v' rows
   tell as much as there is; whether it began with readings. */
typedef struct {
    vec given[(N_S + N_V) * BLOCKS + 1], rates[N_V * BLOCKS + 1], scale[BLOCKS];
    vec R[K * M_BLOCKS], z[M_BLOCKS], gain[K * M_BLOCKS], spread[K * M_BLOCKS], walk[M_BLOCKS];
    vec is_whole[1], has_readings[1];
} kept;
_Static_assert(sizeof(kept) == N_KEPT * sizeof(double), "what is kept is as large as is said");

/* Room for a step back. */
typedef struct {
    vec W[N * BLOCKS], other[N * BLOCKS], F[N * BLOCKS], sums[BLOCKS], x[BLOCKS];
    vec J[K * M_BLOCKS], H[K * M_BLOCKS], C[K * M_BLOCKS], of_memory[K * M_BLOCKS], m[M_BLOCKS], e[M_BLOCKS];
    double b[K];
} room;
_Static_assert(sizeof(room) <= N_ROOM * sizeof(double), "there is room");

/* Time goes on by dt, and what steps back need is kept. */
SEEN void go_on_and_keep(tick *now, double dt) {
    filter *const at = now->steps;
    workspace *const w = (workspace *)at->work;
    kept *const to = (kept *)now->kept;
    double is_whole = now->has_rates && dt <= now->longest;
    set_time(now, dt);
    const int more = carry(at, 0);
    memcpy(to->given, w->moving, sizeof(vec) * (N_S + N_V) * BLOCKS);
    add_noise(at, more, to->spread, to->gain);
    memcpy(to->rates, w->rates, sizeof(vec) * N_V * BLOCKS);
    memcpy(to->scale, w->scale, sizeof to->scale);
    memset(to->R, 0, sizeof to->R);
    memset(to->z, 0, sizeof to->z);
    memset(to->walk, 0, sizeof to->walk);
    for (int i = 0; i < N_S; ++i)
        if (((double *)to->given)[i * WIDTH + i] == 0) is_whole = 0;
    for (int i = 0; i < K; ++i) {
        for (int l = i; l < K; ++l) ((double *)to->R)[i * M_WIDTH + l] = at->known.R[K * i + l];
        ((double *)to->z)[i] = at->known.z[i];
        ((double *)to->walk)[i] = sqrt(at->Q[i]);
    }
    *(double *)to->is_whole = is_whole;
    *(double *)to->has_readings = now->has_rates;
    forget(now, dt);
}

INLINE double dot(int blocks, const vec *a, const vec *x) {
    vec sum = {0};
    double total = 0;
    for (int b = 0; b < blocks; ++b) sum += a[b] * x[b];
    for (int l = 0; l < LANES; ++l) total += ((double *)&sum)[l];
    return total;
}

INLINE void transpose(int n, int width, const vec *from, vec *to) {
    memset(to, 0, sizeof(double) * (size_t)(n * width));
    for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c) ((double *)to)[c * width + r] = ((const double *)from)[r * width + c];
}

/* The first n rows of W become those of R^-1 [1 | -M], for rows [R | M] of which the last number is not looked at. */
INLINE void invert_rows(int n, const vec *rows, vec *W, vec *sums) {
    const double *const M = (const double *)rows;
    double *const to = (double *)W;
    for (int i = n; i-- > 0;) {
        const double inverse = 1 / M[i * WIDTH + i];
        sum_rows(n - 1 - i, M + i * WIDTH + i + 1, 1, W + (i + 1) * BLOCKS, BLOCKS, 0, BLOCKS, sums);
        for (int c = 0; c < n; ++c) to[i * WIDTH + c] = -inverse * ((double *)sums)[c];
        for (int c = n; c < N; ++c) to[i * WIDTH + c] = -inverse * (((double *)sums)[c] + M[i * WIDTH + c]);
        for (int c = N; c < WIDTH; ++c) to[i * WIDTH + c] = 0;
        to[i * WIDTH + i] += inverse;
    }
}

/* A W^T, which is symmetric. */
INLINE void symmetric(const vec *A, const vec *W, vec *other, vec *sums, double *found) {
    transpose(N, WIDTH, W, other);
    for (int i = 0; i < N; ++i) {
        sum_rows(N, (const double *)A + i * WIDTH, 1, other, BLOCKS, 0, i / LANES + 1, sums);
        for (int j = 0; j <= i; ++j) found[i * N + j] = found[j * N + i] = ((double *)sums)[j];
    }
}

/* The estimate u of a tick, given that of m+ from all readings, its numbers from `first` on. Returns whether it could
   be found. */
static int mean_back(const kept *at, int first, const double *later, double *u, room *w) {
    const double *const walks = (const double *)at->walk, *const scale = (const double *)at->scale;
    double *const x = (double *)w->x, *const m = (double *)w->m;
    memset(w->m, 0, sizeof w->m);
    memset(w->x, 0, sizeof w->x);
    for (int i = first; i < K; ++i) {
        if (!is_finite(later[i])) return 0;
        m[i] = later[i];
    }
    for (int i = first; i < K; ++i) w->b[i] = dot(M_BLOCKS, at->R + i * M_BLOCKS, w->m) - ((const double *)at->z)[i];
    sum_rows(K - first, w->b + first, 1, at->gain + first * M_BLOCKS, M_BLOCKS, 0, M_BLOCKS, w->e);
    for (int i = first; i < K; ++i) x[N_S + i] = m[i] - walks[i] * ((double *)w->e)[i];
    x[N] = -1;
    for (int i = N_S + first; i-- > 0;) {
        const vec *const row = at->given + i * BLOCKS;
        const double pivot = ((const double *)row)[i];
        if (pivot == 0 && *(const double *)at->has_readings) return 0;
        x[i] = pivot == 0 ? NAN : -dot(BLOCKS, row, w->x) / pivot;
    }
    for (int i = 0; i < N_S; ++i) u[i] = x[i];
    for (int i = 0; i < N_V; ++i)
        u[N_S + i] = scale[N_S + i] * (x[N_S + i] - dot(BLOCKS, at->rates + i * BLOCKS, w->x));
    for (int i = N_S + N_V; i < N; ++i) u[i] = scale[i] * x[i];
    return 1;
}

/* The covariance of m', given that of m+. */
INLINE void covariance_without_noise(const kept *at, const double *later, room *w) {
    const double *const walks = (const double *)at->walk;
    double *const J = (double *)w->J, *const C = (double *)w->C;
    memset(w->C, 0, sizeof w->C);
    for (int l = 0; l < K; ++l) {
        for (int j = 0; j < K; ++j) C[l * M_WIDTH + j] = later[l * K + j];
        sum_rows(l + 1, (const double *)at->gain + l, M_WIDTH, at->R, M_BLOCKS, 0, M_BLOCKS, w->J + l * M_BLOCKS);
        for (int b = 0; b < M_BLOCKS; ++b) {
            w->J[l * M_BLOCKS + b] *= -walks[l];
            w->H[l * M_BLOCKS + b] = at->spread[l * M_BLOCKS + b] * at->walk[b];
        }
        J[l * M_WIDTH + l] += 1;
    }
    for (int l = 0; l < K; ++l)
        sum_rows(K, J + l * M_WIDTH, 1, w->C, M_BLOCKS, 0, M_BLOCKS, w->of_memory + l * M_BLOCKS);
    transpose(K, M_WIDTH, w->J, w->C);
    for (int l = 0; l < K; ++l) {
        sum_rows(K, (double *)w->of_memory + l * M_WIDTH, 1, w->C, M_BLOCKS, 0, M_BLOCKS, w->m);
        sum_rows(K, (double *)w->H + l, M_WIDTH, w->H, M_BLOCKS, 0, M_BLOCKS, w->e);
        for (int b = 0; b < M_BLOCKS; ++b) w->of_memory[l * M_BLOCKS + b] = w->m[b] + w->e[b];
    }
}

/* The covariance (N, N) of u, given that (K, K) of m+: u = W [n | m'] + ..., n of unit variance. */
static void covariance_back(const kept *at, const double *later, double *found, room *w) {
    const double *const scale = (const double *)at->scale;
    double *const W = (double *)w->W, *const F = (double *)w->F;
    covariance_without_noise(at, later, w);
    memset(w->F, 0, sizeof w->F);
    for (int i = 0; i < N_S; ++i) F[i * WIDTH + i] = 1;
    for (int i = 0; i < K; ++i)
        for (int j = 0; j < K; ++j) F[(N_S + i) * WIDTH + N_S + j] = ((double *)w->of_memory)[i * M_WIDTH + j];
    memset(w->W + N_S * BLOCKS, 0, sizeof(vec) * K * BLOCKS);
    invert_rows(N_S, at->given, w->W, w->sums);
    for (int i = 0; i < N_V; ++i) {
        const double *const rates = (const double *)at->rates + i * WIDTH;
        double *const row = W + (N_S + i) * WIDTH;
        sum_rows(N_S, rates, 1, w->W, BLOCKS, 0, BLOCKS, w->sums);
        for (int c = 0; c < N; ++c) row[c] = -scale[N_S + i] * (((double *)w->sums)[c] + (c < N_S ? 0 : rates[c]));
        row[N_S + i] += scale[N_S + i];
    }
    for (int i = N_S + N_V; i < N; ++i) W[i * WIDTH + i] = scale[i];
    for (int i = 0; i < N; ++i) {
        sum_rows(N, W + i * WIDTH, 1, w->F, BLOCKS, 0, BLOCKS, w->sums);
        memcpy(w->other + i * BLOCKS, w->sums, sizeof w->sums);
    }
    memcpy(w->F, w->other, sizeof w->F);
    symmetric(w->F, w->W, w->other, w->sums, found);
}

/* The ticks of a run, from what is known of the memory on. */
SEEN void forward(const tick *now, const run *at) {
    filter own = *now->steps, *const steps = &own;
    tick here = *now;
    workspace *const work = (workspace *)steps->work;
    const double *const M = (const double *)work->rows;
    here.steps = steps;
    here.has_rates = 1;
    for (ptrdiff_t t = 0; t < at->n; ++t) {
        double *const rows = at->rows + t * N * (N + 1);
        steps->A = at->values + t * (N_A + P + N_X + N_V + N_FADING);
        steps->c = steps->A + N_A;
        steps->X = steps->c + P;
        steps->x = steps->X + N_X;
        steps->weights = at->weights + t * P;
        at->lost[t] = update(steps);
        at->nis[t] = steps->nis;
        at->degrees[t] = steps->degrees;
        at->log_likelihood[t] = steps->log_likelihood;
        memcpy(at->u + t * N, steps->u, sizeof(double) * N);
        for (int i = 0; i < N; ++i)
            for (int j = i; j <= N; ++j) rows[i * (N + 1) + j] = M[i * WIDTH + j];
        if (at->steps[t] == 0) continue;
        if (at->kept) {
            here.kept = (kept *)at->kept + t;
            go_on_and_keep(&here, at->steps[t]);
        } else {
            go_on(&here, at->steps[t]);
        }
    }
}

/* The covariances of a run's ticks by the readings up to each, but where something is not determined. */
SEEN void covariances(const run *at) {
    room *const w = (room *)at->room;
    memset(w->F, 0, sizeof w->F);
    for (ptrdiff_t t = 0; t < at->n; ++t) {
        const double *const rows = at->rows + t * N * (N + 1);
        if (at->lost[t]) continue;
        for (int i = 0; i < N; ++i)
            memcpy((double *)w->F + i * WIDTH + i, rows + i * (N + 1) + i, sizeof(double) * (size_t)(N - i));
        invert_rows(N, w->F, w->W, w->sums);
        symmetric(w->W, w->W, w->other, w->sums, at->covariance + t * N * N);
    }
}

/* Ticks of a run by all readings, from the last back: mean (K,) and, where it is wanted, covariance (K, K) are those of
   the memory at the tick after it first, and at the last that was done in the end. Through gaps means alone are told.
   Returns how many are left, the next of which has a step that is not whole, or follows what is not finite. */
SEEN ptrdiff_t backward(const run *at, double *mean, double *covariance) {
    room *const w = (room *)at->room;
    for (ptrdiff_t t = at->n; t-- > 0;) {
        const kept *const from = (const kept *)at->kept + t;
        double *const u = at->u + t * N;
        if (at->is_gap ? covariance != NULL : !*(const double *)from->is_whole) return t + 1;
        if (!mean_back(from, at->is_gap ? N_V : 0, mean, u, w)) return t + 1;
        memcpy(mean, u + N_S, sizeof(double) * K);
        if (!covariance) continue;
        double *const P_u = at->covariance + t * N * N;
        covariance_back(from, covariance, P_u, w);
        for (int i = 0; i < K; ++i) memcpy(covariance + i * K, P_u + (N_S + i) * N + N_S, sizeof(double) * K);
    }
    return 0;
}
