/* A tracker that recognises contacts and stands alone, after hypotheses.h and alone.h.

   The unit says before, beside: N_STATES, N_CONTACTS, REACH, RATE, PART, LIKELY, see `hypotheses`; the tables of its fields:
   exact_weights, case_logs, loose_logs, state_distances, state_closes, state_order, state_counts, state_ends; and state_bits: of each
   state, the sum of the bits of the contacts that are closed. */

_Static_assert(sizeof(judging) + 2 * N_STATES * sizeof(prior) <= sizeof(((FILTER *)0)->room), "there is room");

/* Begins, with what is known at first, and all states as likely. */
static void begin(FILTER *of) {
    begin_known(of);
    for (int h = 0; h < N_STATES; ++h) of->probabilities[h] = 1.0 / N_STATES;
}

/* One tick. Returns whether it has an estimate; what it writes is not a number where it has none. */
static int estimate(FILTER *of, const double *in, OUTPUTS *out) {
    const state rows = {of->state, of->w, of->entries, 0, 0, 0, 0};
    const state outputs = {of->free, of->w, (double *)out, 0, 0, 0, 0};
    filter steps[N_STATES];
    tick ticks[N_STATES], *each[N_STATES];
    double expected[N_STATES], logs[N_STATES];
#ifdef BASE
    const axes_change *const change = refer(of);
#endif
    int prior_of[N_STATES];
    const int input_status = taken(of, in);
    hypotheses at = {.each = each,
                     .work = of->room,
                     .probabilities = of->probabilities,
                     .expected = expected,
                     .logs = logs,
                     .transitions = of->transitions,
                     .weights = exact_weights,
                     .row_logs = case_logs,
                     .free_logs = loose_logs,
                     .apart = state_distances,
                     .closes = state_closes,
                     .order = state_order,
                     .counts = state_counts,
                     .ends = state_ends,
                     .prior_of = prior_of,
                     .rate = RATE,
                     .dt = *of->switched,
                     .part = PART,
                     .likely = LIKELY,
                     .n = N_STATES,
                     .n_contacts = N_CONTACTS,
                     .reach = REACH,
                     .has_begun = of->last >= 0};
    for (int h = 0; h < N_STATES; ++h) {
        steps[h] = steps_of(of, h);
        ticks[h] = tick_of(of, steps + h, &rows, &outputs, input_status == OK, of->rates[h] != 0);
        each[h] = ticks + h;
    }
#ifdef BASE
    at.change = change;
#endif
    const int wrong = judge(&at, *of->step);
    *of->switched = at.dt;
    for (int h = 0; h < N_STATES; ++h) {
        if (ticks[h].dt == *of->step) of->dt = *of->step;
        of->rates[h] = ticks[h].has_rates;
    }
    *of->best = at.best;
    const int status = told(of, steps + at.best, input_status, wrong, out);
    if (status != OK) return status;
    memcpy(out->probabilities, of->probabilities, sizeof out->probabilities);
    out->closed = state_bits[at.best];
    return OK;
}

/* The next tick is a time dt after the last. */
static void pass(FILTER *of, double dt) {
    *of->step = dt;
#ifdef BASE
    ((base *)of->base)->dt = dt;
#endif
}

/* The rows [R | z] of the last tick, in the most likely state. */
static const double *known_rows(const FILTER *of) { return of->work + (ptrdiff_t)*of->best * N_WORK; }
