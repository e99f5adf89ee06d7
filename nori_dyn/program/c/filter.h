/* What is known of the memory: R m = z + noise, R row by row; a row of zeros says nothing. */
typedef struct {
    double *R, *z;
} memory;

/* A, c: entries and constants of the weighed rows A u + c = noise; X, x: those of the rates; weights: one over the
   variances, 0 where a reading is missing; decay, Q: of each number of the memory over dt. u: the estimate, not a
   number where it is not determined; pivots: one over each pivot, 0 where it vanishes. The workspace begins with the
   rows [R | z] of u. */
typedef struct {
    memory known;
    double *A, *c, *X, *x, *weights, *decay, *Q;
    double *u, *pivots, *work;
    double dt, nis, log_likelihood;
    int degrees;
} filter;

/* What is done to what is known of the memory before a tick, where a floating base, nine numbers of it, gets other axes:
   the first three and the next three turn by T (3, 3), or all nine are known by R (9, 9) and z instead. */
typedef struct {
    int is_turn;
    double T[9], R[81], z[9];
} axes_change;

/* A tick: the steps; the programs of its rows, from state to A, c, X, x, and of its outputs, from `free` to them; how
   time goes on from it; the state q, qd, y, weights; q, qd, exact readings and the estimate of what is free; sums of
   chi-squares, of their degrees of freedom, and of ticks; the time for which decay and Q are; the longest time over
   which rates are known; whether they are; where what a step back needs is kept; NULL, or what is done to what is known
   before its readings. */
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
    const axes_change *change;
};

/* A filter whose ticks are judged in each of n contact states. each: the tick of each, whose steps share the rows of
   the tick; the first has the programs. probabilities: of the states, which go on; expected: before the readings; logs:
   of the readings' density, minus infinity where a state is not judged. transitions: from each state (n, n), over dt.
   weights: of rows that hold exactly where they count, 0 of others; row_logs: what the row of a case adds to logs;
   free_logs: what each number adds that a state does not determine. apart: in how many contacts states differ. Of each
   state order: its rows by first column, below N those that hold in all states, from there on those of cases; counts:
   how many there are; ends: how many have begun by each column. prior_of: which prior each state had, or -1. part: the
   probability below which a state has no part in a mixture; likely: from which on those near a state are judged.
   change: as that of a tick, for the prior of each. */
typedef struct {
    tick **each;
    void *work;
    double *probabilities, *expected, *logs, *transitions;
    const double *weights, *row_logs, *free_logs;
    const int *apart, *closes, *order, *counts, *ends;
    int *prior_of;
    double rate, dt, part, likely;
    int n, n_contacts, reach, has_begun, best;
    const axes_change *change;
} hypotheses;

/* Ticks that follow each other. Of each: what its readings say, the weights of its rows, the time to the next, 0 where
   there is none; then what is found: the estimate, rows [R | z], the covariance, the chi-square, the log likelihood,
   degrees of freedom, how many pivots vanish; and what steps back need, where there will be any. Whether the
   motion after each is not known, for steps back. */
typedef struct {
    ptrdiff_t n;
    double *values, *weights;
    const double *steps;
    double *u, *rows, *covariance, *nis, *log_likelihood;
    int *degrees, *lost;
    void *kept, *room;
    int is_gap;
} run;
