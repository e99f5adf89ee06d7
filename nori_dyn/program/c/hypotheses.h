#include "tick.h"

#define MEMORY_BLOCKS (K / LANES + 1)
#define MEMORY_WIDTH (MEMORY_BLOCKS * LANES)
#define COMMON_ROOM (COMMON > N ? COMMON : N)
#define HIGHEST (COMMON_ROOM > N + CASES ? COMMON_ROOM : N + CASES)
#define STATE_ROWS (N + CASES)

/* What is known of the memory before the readings, and with the rows that hold in all states: triangular rows [R | z],
   what they leave, and what they add to the determinants. inverse: [R^-1 | R^-1 z]. Prior g < n is what state g told
   and has gone on to the tick, n + h the mixture for state h. */
typedef struct {
    vec merged[K * MEMORY_BLOCKS], inverse[K * MEMORY_BLOCKS];
    double R[K * K], z[K];
    memory known;
    double left, product;
    int exponent, degrees, is_carried, is_inverted, is_changed, is_merged;
} prior;

typedef struct {
    vec rows[(COMMON_ROOM + CASES) * BLOCKS], own[STATE_ROWS * BLOCKS], sums[BLOCKS], sizes[BLOCKS];
    vec mixing[(2 * K + 1) * MEMORY_BLOCKS], inverse[K * MEMORY_BLOCKS];
    double column[HIGHEST + 2 * K + 1], pivots[N + 1], roots[P + 1], mean[K];
    double left, product;
    int exponent, degrees;
    prior priors[];
} judging;

SEEN size_t judging_room(int n) { return sizeof(judging) + 2 * (size_t)n * sizeof(prior); }

static int all_columns(int rows, vec *M, const int *ends, double *pivots, double *left, judging *w) {
    return reflected(rows, N, BLOCKS, M, ends, pivots, left, w->column, w->sums, w->sizes);
}

static int memory_columns(int rows, vec *M, const int *ends, double *left, judging *w) {
    return reflected(rows, K, MEMORY_BLOCKS, M, ends, w->pivots, left, w->column, w->sums, w->sizes);
}

/* X = [R^-1 | R^-1 z] of R upper triangular, of which a step down and a step across are told. */
static void invert(const double *R, int down, int across, const double *z, vec *X) {
    for (int i = K; i-- > 0;) {
        const double *const diagonal = R + i * (down + across);
        const double pivot = 1 / *diagonal;
        vec *const row = X + i * MEMORY_BLOCKS;
        for (int b = 0; b < i / LANES; ++b) row[b] = (vec){0};
        sum_rows(K - 1 - i, diagonal + across, across, row + MEMORY_BLOCKS, MEMORY_BLOCKS, i / LANES, MEMORY_BLOCKS,
                 row);
        for (int b = i / LANES; b < MEMORY_BLOCKS; ++b) row[b] *= -pivot;
        ((double *)row)[i] += pivot;
        ((double *)row)[K] += pivot * z[i];
    }
}

/* The probability of each state after dt, from each. */
static void set_transitions(hypotheses *at, double dt) {
    const double p = -expm1(-2 * at->rate * dt) / 2;
    for (int g = 0; g < at->n; ++g) {
        double *const row = at->transitions + g * at->n;
        double sum = 0;
        for (int h = 0; h < at->n; ++h) {
            const int apart = at->apart[g * at->n + h];
            row[h] = pow(p, apart) * pow(1 - p, at->n_contacts - apart);
            sum += row[h];
        }
        for (int h = 0; h < at->n; ++h) row[h] /= sum;
    }
    at->dt = dt;
}

/* What is expected of the states before the readings, and which are judged: those near a likely one. */
static void expect(hypotheses *at, double dt) {
    const int n = at->n;
    double *const expected = at->expected, least = 0;
    if (at->has_begun) {
        if (dt != at->dt) set_transitions(at, dt);
        for (int h = 0; h < n; ++h) expected[h] = 0;
        for (int g = 0; g < n; ++g)
            for (int h = 0; h < n; ++h) expected[h] += at->probabilities[g] * at->transitions[g * n + h];
    } else {
        for (int h = 0; h < n; ++h) expected[h] = at->probabilities[h];
    }
    for (int h = 0; h < n; ++h) least = fmax(least, expected[h]);
    least = fmin(least, at->likely);
    for (int h = 0; h < n; ++h) {
        int is_near = 0;
        for (int g = 0; g < n; ++g) is_near |= expected[g] >= least && at->apart[g * n + h] <= at->reach;
        at->prior_of[h] = is_near && expected[h] > 0 ? 0 : -1;
    }
}

/* One normal density with the mean and the covariance of a mixture: P = C C^T with the columns sqrt(share) [R^-1,
   mean - that of all], with C made triangular part by part, its rows from the last one up. Numbers that jump where
   contacts close have sqrt(closing) jump more, as a part of its own. */
static void mix(hypotheses *at, judging *w, const double *share, double closing, prior *into) {
    double *const M = (double *)w->mixing, left;
    int is_first = 1;
    for (int i = 0; i < K; ++i) w->mean[i] = 0;
    for (int g = 0; g < at->n; ++g) {
        if (share[g] == 0) continue;
        prior *const part = w->priors + g;
        if (!part->is_inverted) invert(part->known.R, K, 1, part->known.z, part->inverse);
        part->is_inverted = 1;
        for (int i = 0; i < K; ++i) w->mean[i] += share[g] * ((double *)part->inverse)[i * MEMORY_WIDTH + K];
    }
    memset(M, 0, sizeof w->mixing);
    for (int g = 0; g <= at->n; ++g) {
        const int jumps = g == at->n;
        const double part = jumps ? closing : share[g], root = sqrt(part);
        if (part == 0) continue;
        const double *const from = (double *)w->priors[g].inverse;
        if (!is_first)
            for (int j = K; j-- > 0;) {
                memmove(M + (2 * j + 1) * MEMORY_WIDTH, M + j * MEMORY_WIDTH, sizeof(double) * MEMORY_WIDTH);
                memset(M + (2 * j + 2) * MEMORY_WIDTH, 0, sizeof(double) * MEMORY_WIDTH);
            }
        for (int i = 0; i < K; ++i) {
            const double *const row = from + i * MEMORY_WIDTH;
            M[K - 1 - i] = jumps ? 0 : root * (row[K] - w->mean[i]);
            if (jumps)
                M[(2 * (K - i)) * MEMORY_WIDTH + K - 1 - i] = root * jump[i];
            else
                for (int l = i; l < K; ++l) M[(2 * (K - l)) * MEMORY_WIDTH + K - 1 - i] = root * row[l];
        }
        memory_columns(2 * K + 1, w->mixing, mixing_ends, &left, w);
        is_first = 0;
    }
    invert(M + (K - 1) * (MEMORY_WIDTH + 1), -1, -MEMORY_WIDTH, w->mean, w->inverse);
    for (int i = 0; i < K; ++i) {
        const double *const row = (double *)w->inverse + i * MEMORY_WIDTH;
        for (int l = 0; l < K; ++l) into->R[i * K + l] = row[l];
        into->z[i] = row[K];
    }
}

/* Whether all numbers of the memory are known. */
static int is_known(const memory *known) {
    for (int i = 0; i < K; ++i)
        if (known->R[i * (K + 1)] == 0) return 0;
    return 1;
}

/* What is known of the memory before the readings, if it has come to each of the states that are judged. */
static void find_priors(hypotheses *at, judging *w, double dt) {
    const int n = at->n;
    double *const share = at->logs;
    for (int i = 0; i < 2 * n; ++i) {
        prior *const one = w->priors + i;
        one->is_carried = one->is_inverted = one->is_changed = one->is_merged = 0;
        one->known = i < n ? at->each[i]->steps->known : (memory){one->R, one->z};
    }
    if (!at->has_begun) return;
    for (int h = 0; h < n; ++h) {
        if (at->prior_of[h] < 0) continue;
        double sum = 0;
        int parts = 0, largest = 0, all_known = 1;
        for (int g = 0; g < n; ++g) {
            share[g] = at->probabilities[g] * at->transitions[g * n + h] / at->expected[h];
            if (share[g] > share[largest]) largest = g;
        }
        const double least = fmin(at->part, share[largest]);
        for (int g = 0; g < n; ++g) {
            if (share[g] < least) share[g] = 0;
            if (share[g] == 0) continue;
            prior *const part = w->priors + g;
            if (!part->is_carried) at->each[g]->go_on(at->each[g], dt);
            part->is_carried = 1;
            all_known = all_known && is_known(&part->known);
            sum += share[g];
            ++parts;
        }
        at->prior_of[h] = largest;
        double closing = 0;
        for (int g = 0; g < n; ++g) {
            share[g] /= sum;
            if (JUMPS && at->closes[g * n + h]) closing += share[g];
        }
        if ((parts == 1 && closing == 0) || !all_known) continue;
        mix(at, w, share, closing, w->priors + n + h);
        at->prior_of[h] = n + h;
    }
}

#ifdef BASE
/* A floating base gets other axes in each prior that a state has. */
static void change_priors(hypotheses *at, judging *w) {
    for (int h = 0; h < at->n; ++h) {
        prior *const one = w->priors + at->prior_of[h];
        if (at->prior_of[h] < 0 || one->is_changed) continue;
        change_known(at->change, &one->known, (workspace *)at->each[h]->steps->work);
        one->is_changed = 1;
    }
    at->change = NULL;
}
#endif

/* The rows of the tick, with their weights: those that hold in all states triangular, those of cases below. Returns
   whether there are none. */
static int read_rows(hypotheses *at, judging *w) {
    tick *const first = at->each[0];
    filter *const steps = first->steps;
    double *const M = (double *)w->rows;
    if (first->rows(first->rows_at)) return 1;
    memset(w->rows, 0, sizeof w->rows);
    w->product = 1;
    w->exponent = w->degrees = 0;
    for (int i = 0; i < P; ++i) {
        const double given = first->state[N_STATE + weight_of[i]];
        const double weight = steps->weights[i] = given > 0 && at->weights[i] > 0 ? at->weights[i] : given;
        w->roots[i] = sqrt(weight);
        if (weight == 0) continue;
        M[WIDTH * measured_row[i] + N] = -w->roots[i] * steps->c[i];
        if (measured_row[i] >= COMMON_ROOM) continue;
        multiply(&w->product, &w->exponent, weight);
        ++w->degrees;
    }
    for (int e = 0; e < N_A; ++e) {
        const double root = w->roots[entry_sensor[e]];
        M[measured_place[e]] = root == 0 ? 0 : root * steps->A[e];
    }
    all_columns(COMMON, w->rows, common_ends, w->pivots, &w->left, w);
    return 0;
}

/* What the rows that hold in all states tell of the memory, with a prior. */
static void merge(judging *w, prior *one) {
    double *const M = (double *)w->mixing;
    const double *const told = (double *)w->rows + N_S * (WIDTH + 1);
    one->product = w->product;
    one->exponent = w->exponent;
    one->degrees = w->degrees;
    for (int i = 0; i < K; ++i) {
        double *const known = M + 2 * i * MEMORY_WIDTH, *const row = known + MEMORY_WIDTH;
        const double diagonal = one->known.R[i * (K + 1)];
        memset(known, 0, 2 * sizeof(double) * MEMORY_WIDTH);
        memcpy(known + i, one->known.R + i * (K + 1), sizeof(double) * (size_t)(K - i));
        known[K] = one->known.z[i];
        memcpy(row + i, told + i * (WIDTH + 1), sizeof(double) * (size_t)(K + 1 - i));
        if (diagonal != 0) {
            multiply(&one->product, &one->exponent, diagonal * diagonal);
            ++one->degrees;
        }
    }
    memory_columns(2 * K, w->mixing, merging_ends, &one->left, w);
    memcpy(one->merged, w->mixing, sizeof one->merged);
    one->left += w->left;
    one->is_merged = 1;
}

/* The rows of a state, triangular, and the logarithm of its readings' density. */
static double judge_one(hypotheses *at, judging *w, int h) {
    filter *const steps = at->each[h]->steps;
    const double *const weights = at->each[0]->steps->weights;
    prior *const one = w->priors + at->prior_of[h];
    if (!one->is_merged) merge(w, one);
    const int count = at->counts[h], *const order = at->order + h * STATE_ROWS;
    double *const M = (double *)w->own;
    double over = one->product, under = 1, added = 0, left;
    int more = one->exponent, less = 0, degrees = one->degrees;
    for (int r = 0; r < count; ++r) {
        const int i = order[r];
        double *const row = M + r * WIDTH;
        if (i >= N_S && i < N) {
            const int l = i - N_S;
            memset(row, 0, sizeof(double) * WIDTH);
            memcpy(row + i, (double *)one->merged + l * (MEMORY_WIDTH + 1), sizeof(double) * (size_t)(K + 1 - l));
        } else {
            memcpy(row, (double *)w->rows + (i < N ? i : i - N + COMMON_ROOM) * WIDTH, sizeof(double) * WIDTH);
        }
        if (i >= N) {
            const double weight = weights[of_case[i - N]];
            if (weight == 0) continue;
            multiply(&over, &more, weight);
            added += at->row_logs[i - N];
            ++degrees;
        }
    }
    const int rank = all_columns(count, w->own, at->ends + h * N, steps->pivots, &left, w);
    memcpy(((workspace *)steps->work)->rows, w->own, sizeof(vec) * N * BLOCKS);
    for (int j = 0; j < N; ++j) {
        const double pivot = M[j * (WIDTH + 1)];
        if (steps->pivots[j])
            multiply(&under, &less, pivot * pivot);
        else if (j < N_S)
            added += at->free_logs[j];
    }
    steps->nis = one->left + left;
    steps->degrees = degrees - rank;
    steps->log_likelihood = (log(over) - log(under) + (more - less) * 0.69314718055994530942 - steps->nis -
                             steps->degrees * 1.8378770664093454836) /
                            2;
    return steps->log_likelihood + added;
}

/* The probabilities of the states by the readings; returns whether a number is not finite. */
static int weigh(hypotheses *at) {
    const int n = at->n;
    double top = -INFINITY, sum = 0;
    for (int h = 0; h < n; ++h) {
        if (at->prior_of[h] < 0) continue;
        if (!is_finite(at->logs[h])) return 1;
        top = fmax(top, at->logs[h]);
    }
    for (int h = 0; h < n; ++h) sum += at->probabilities[h] = at->expected[h] * exp(at->logs[h] - top);
    at->best = 0;
    for (int h = 0; h < n; ++h) {
        at->probabilities[h] /= sum;
        if (at->probabilities[h] > at->probabilities[at->best]) at->best = h;
    }
    return 0;
}

/* The last tick goes on as one without readings: each state knows what it knew before, but for what has a rate. */
static void refuse(hypotheses *at) {
    judging *const w = at->work;
    for (int h = 0; h < at->n; ++h) {
        at->logs[h] = at->prior_of[h] < 0 ? -INFINITY : 0;
        if (at->prior_of[h] < 0) continue;
        filter *const steps = at->each[h]->steps;
        const memory own = steps->known;
        steps->known = w->priors[at->prior_of[h]].known;
        coast(at->each[h]);
        steps->known = own;
    }
    weigh(at);
}

/* One tick, a time dt after the last. Returns 0, or why there is no estimate in the most likely state, see
   `step`. */
SEEN int judge(hypotheses *at, double dt) {
    judging *const w = at->work;
    expect(at, dt);
    find_priors(at, w, dt);
#ifdef BASE
    if (at->change) change_priors(at, w);
#endif
    int wrong = read_rows(at, w);
    for (int h = 0; h < at->n; ++h) at->logs[h] = -INFINITY;
    for (int h = 0; h < at->n && !wrong; ++h) {
        if (at->prior_of[h] < 0) continue;
        at->logs[h] = judge_one(at, w, h);
        at->each[h]->has_rates = 1;
    }
    if (!wrong) wrong = weigh(at);
    if (!wrong) {
        filter *const best = at->each[at->best]->steps;
        double *const totals = at->each[0]->totals;
        int rank = 0;
        totals[0] += best->nis;
        totals[1] += best->degrees;
        totals[2] += 1;
        for (int j = 0; j < N; ++j) rank += best->pivots[j] != 0;
        solve_rows(best, rank);
        wrong = rank < N ? 2 : tell(at->each[0], best->u) ? 3 : 0;
    }
    if (wrong == 1) refuse(at);
    at->has_begun = 1;
    return wrong;
}
