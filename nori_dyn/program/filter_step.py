"""A whole tick of a filter as C: time goes on, the rows of the tick, the update, all outputs; one call.

The C of the steps (`filter_source`) goes before it, and the straight-line programs of rows and outputs are called
through pointers, so that each is compiled alone.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nori_dyn.program.filter_source import FilterShape, filter_source, listed_table

DECLARED_TICK = """
typedef struct tick tick;
typedef int job(const void *);
struct tick {
    filter *steps;
    job *rows, *outputs;
    const void *rows_at, *outputs_at;
    void (*go_on)(tick *, double);
    const double *state;
    double *free, *totals;
    double dt, longest;
    int has_rates;
    void *kept;
};
int step(tick *now, tick *last, double dt);
void coast(tick *now);
void go_on(tick *now, double dt);
"""
"""What a caller sees beside `filter`."""

STEP = r"""
/* A tick: the steps; the programs of its rows, from state to A, c, X, x, and of its outputs, from `free` to them; how
   time goes on from it; the state q, qd, y, weights; q, qd, exact readings and the estimate of what is free; sums of
   chi-squares, of their degrees of freedom, and of ticks; the time for which decay and Q are; the longest time over
   which rates are known; whether they are; where what a step back needs is kept. */
typedef int job(const void *);
typedef struct tick tick;
struct tick {
    filter *steps;
    job *rows, *outputs;
    const void *rows_at, *outputs_at;
    void (*go_on)(tick *, double);
    const double *state;
    double *free, *totals;
    double dt, longest;
    int has_rates;
    void *kept;
};

/* What is known of the memory goes on by a time dt. */
INLINE void set_time(tick *now, double dt) {
    filter *const at = now->steps;
    if (dt != now->dt) {
        for (int i = 0; i < K; ++i) {
            at->decay[i] = inverse_time[i] > 0 ? exp(-dt * inverse_time[i]) : 1;
            at->Q[i] = walk[i] * walk[i]
                       * (inverse_time[i] > 0 ? -0.5 * expm1(-2 * dt * inverse_time[i]) / inverse_time[i] : dt);
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

/* One tick, a time dt after the last, which may be of other contacts; none before the first. Returns 0, or a number
   above 0 where it has no estimate: 1, numbers that are not finite; 2, something is not determined; 3, exact rows have
   no solution. With 1 what is known goes on as without its readings; else they tell what they can. */
SEEN int step(tick *now, tick *last, double dt) {
    filter *const at = now->steps;
    double *const weights = at->weights;
    int wrong = 0;
    if (last) last->go_on(last, dt);
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
"""

RECALL = r"""
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
        if (!R[j * WIDTH + j]) { ++lost; continue; }
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
"""
"""What code that stands alone has besides."""


@dataclass(frozen=True, slots=True)
class TickShape:
    """What the C of a tick has to know beside the sizes of its steps.

    Attributes:
        steps: these.
        n_motion: length of q and qd.
        n_y: length of y.
        exact: which numbers of y the exact rows read.
        weight_of: for each weighed row the number of its weight.
        walk: of each number of the memory, its standard deviation after a second.
        inverse_time: one over the time constant of each; 0 where it stays.
    """

    steps: FilterShape
    n_motion: int
    n_y: int
    exact: Sequence[int]
    weight_of: Sequence[int]
    walk: Sequence[float]
    inverse_time: Sequence[float]


def tick_source(shape: TickShape, lanes: int, alone: bool = False) -> str:
    """Return the C of a tick: `tick`, `step`, `go_on`, `coast`.

    Args:
        shape: what it has to know.
        lanes: see `filter_source`.
        alone: see `filter_source`; `recall` is there then, too.
    """
    sizes = {
        "N_MOTION": shape.n_motion,
        "N_STATE": shape.n_motion + shape.n_y,
        "N_EXACT": len(shape.exact),
    }
    head = "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    tables = listed_table("exact", shape.exact) + listed_table("weight_of", shape.weight_of)
    numbers = listed_table("walk", shape.walk, "double") + listed_table("inverse_time", shape.inverse_time, "double")
    return filter_source(shape.steps, lanes, alone) + head + tables + numbers + STEP + (RECALL if alone else "")
