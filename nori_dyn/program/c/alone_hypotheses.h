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
    int prior_of[N_STATES], status = taken(of, in);
    const int is_read = status == OK;
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
        const tick one = {.steps = steps + h,
                          .rows = is_read ? run_rows : no_rows,
                          .outputs = run_outputs,
                          .rows_at = &rows,
                          .outputs_at = &outputs,
                          .go_on = go_on,
                          .state = of->state,
                          .free = of->free,
                          .totals = of->totals,
                          .dt = of->dt,
                          .longest = LONGEST,
                          .has_rates = of->rates[h] != 0};
        steps[h] = steps_of(of, h);
        ticks[h] = one;
        each[h] = ticks + h;
    }
#ifdef BASE
    at.change = change;
#endif
    of->lost = -1;
    const int wrong = judge(&at, *of->step);
    if (is_read) status = reasons[wrong];
    *of->switched = at.dt;
    for (int h = 0; h < N_STATES; ++h) {
        if (ticks[h].dt == *of->step) of->dt = *of->step;
        of->rates[h] = ticks[h].has_rates;
    }
    *of->best = at.best;
    const filter *const best = steps + at.best;
#ifdef BASE
    take_base(of, best, wrong);
#endif
    for (int j = N; status == UNDETERMINED && j-- > 0;)
        if (best->pivots[j] == 0) of->lost = free_places[j];
    if (status != OK) {
        memset(out, 0xff, sizeof *out); /* all bits set is not a number */
        return status;
    }
    memcpy(out->memory, best->u + N_S, sizeof out->memory);
#ifdef BASE
    tell_base(((const base *)of->base)->R, ((const base *)of->base)->pose, out->memory, out->base);
#endif
    memcpy(out->probabilities, of->probabilities, sizeof out->probabilities);
    out->closed = state_bits[at.best];
    out->nis = best->nis;
    out->degrees = best->degrees;
    out->log_likelihood = best->log_likelihood;
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
