#include "square_root.h"

/* What is known of the memory goes on by a time dt. Numbers that fade in a time that depends on the state keep their
   variance, and have faded where the state is not known for as long; `inverse_time` is their least then. */
INLINE void set_time(tick *now, double dt) {
    filter *const at = now->steps;
    if (dt != now->dt || N_FADING > 0) {
        const int is_known = now->has_rates && dt <= now->longest;
        for (int i = 0; i < K; ++i) {
            const double rate = inverse_time[i];
            double gained = dt;
            at->decay[i] = 1;
            if (fading[i] >= 0) {
                at->decay[i] = is_known ? fmax(exp(-dt * at->x[N_V + fading[i]]), LEAST_LEFT) : LEAST_LEFT;
                gained = 0.5 * (1 - at->decay[i] * at->decay[i]) / rate;
            } else if (rate > 0) {
                at->decay[i] = exp(-dt * rate);
                gained = -0.5 * expm1(-2 * dt * rate) / rate;
            }
            at->Q[i] = walk[i] * walk[i] * gained;
        }
        now->dt = dt;
    }
    at->dt = now->has_rates ? dt : 0;
}

/* Where that is longer than rates are known, nothing is of v. */
INLINE void forget(tick *now, double dt) {
    memory *const known = &now->steps->known;
    if (dt > now->longest) {
        for (int i = 0; i < K * N_V; ++i) known->R[i] = 0;
        for (int i = 0; i < N_V; ++i) known->z[i] = 0;
    }
}

/* What is known of the memory a time dt after this tick. */
SEEN void go_on(tick *now, double dt) {
    set_time(now, dt);
    propagate(now->steps);
    forget(now, dt);
}

/* What is known of the memory, from its number `first` on, and nothing else, becomes the rows of u. */
static void put_known(filter *at, int first) {
    double *const M = (double *)((workspace *)at->work)->rows;
    memset(M, 0, sizeof(vec) * BLOCKS * N);
    for (int i = first; i < K; ++i) {
        for (int l = i; l < K; ++l) M[(N_S + i) * WIDTH + N_S + l] = at->known.R[K * i + l];
        M[(N_S + i) * WIDTH + N] = at->known.z[i];
    }
}

/* A tick without readings, and so without rates: what is known of v is not known any more. */
SEEN void coast(tick *now) {
    put_known(now->steps, N_V);
    now->has_rates = 0;
}

/* The outputs of an estimate; returns whether there are none. */
static int tell(tick *now, const double *u) {
    double *const free = now->free;
    for (int i = 0; i < N_MOTION; ++i) free[i] = now->state[i];
    for (int i = 0; i < N_EXACT; ++i) free[N_MOTION + i] = now->state[N_MOTION + exact[i]];
    for (int i = 0; i < N; ++i) free[N_MOTION + N_EXACT + i] = u[i];
    return now->outputs(now->outputs_at);
}

#ifdef BASE
/* A floating base gets other axes: columns of what is known of it turn, and all rows are made triangular again. */
RARE void change_known(const axes_change *by, memory *known, workspace *w) {
    double *const M = (double *)w->moving, left;
    int ends[K];
    if (!by->is_turn) {
        for (int i = 0; i < 9; ++i) {
            double *const row = known->R + (BASE + i) * K;
            memset(row, 0, sizeof(double) * K);
            memcpy(row + BASE, by->R + 9 * i, sizeof(double) * 9);
            known->z[BASE + i] = by->z[i];
        }
        return;
    }
    memset(w->moving, 0, sizeof(vec) * K * BLOCKS);
    for (int i = 0; i < K; ++i) {
        memcpy(M + i * WIDTH, known->R + i * K, sizeof(double) * K);
        M[i * WIDTH + K] = known->z[i];
        ends[i] = i + 1;
    }
    for (int part = BASE; part < BASE + 6; part += 3) {
        for (int i = 0; i < part + 3; ++i) {
            const double *const x = known->R + i * K + part;
            for (int j = 0; j < 3; ++j)
                M[i * WIDTH + part + j] = by->T[3 * j] * x[0] + by->T[3 * j + 1] * x[1] + by->T[3 * j + 2] * x[2];
        }
        ends[part] = ends[part + 1] = part + 3;
    }
    reflected(K, K, BLOCKS, w->moving, ends, w->pivots, &left, w->column, w->sums, w->sizes);
    for (int i = 0; i < K; ++i) {
        memcpy(known->R + i * K, M + i * WIDTH, sizeof(double) * K);
        known->z[i] = M[i * WIDTH + K];
    }
}
#endif

/* One tick, a time dt after the last, which may be of other contacts; none before the first. Returns 0, or a number
   above 0 where it has no estimate: 1, numbers that are not finite; 2, something is not determined; 3, exact rows have
   no solution. With 1 what is known goes on as without its readings; else they tell what they can. */
SEEN int step(tick *now, tick *last, double dt) {
    filter *const at = now->steps;
    double *const weights = at->weights;
    int wrong = 0;
    if (last) last->go_on(last, dt);
#ifdef BASE
    if (now->change) change_known(now->change, &at->known, (workspace *)at->work);
    now->change = NULL;
#endif
    now->has_rates = 1;
    for (int i = 0; i < P; ++i) weights[i] = now->state[N_STATE + weight_of[i]];
    if (now->rows(now->rows_at)) {
        wrong = 1;
    } else {
        const int lost = update(at);
        wrong = is_finite(at->nis) ? lost ? 2 : 0 : 1;
    }
    if (!wrong && tell(now, at->u)) wrong = 3;
    if (wrong == 1) {
        coast(now);
    } else {
        now->totals[0] += at->nis;
        now->totals[1] += at->degrees;
        now->totals[2] += 1;
    }
    return wrong;
}
