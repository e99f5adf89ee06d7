/* A filter that stands alone, after tick.h, or with a lag window.h, and alone.h. */

#ifdef LAG
/* Of a tick the outputs are wanted when it is late. */
static int write_outputs(const void *at) {
    (void)at;
    return 0;
}
#else
#define write_outputs run_outputs
#endif

/* Begins, with what is known at first. */
static void begin(FILTER *of) { begin_known(of); }

/* One tick. Returns whether it has an estimate; what it writes is not a number where it has none. */
static int estimate(FILTER *of, const double *in, OUTPUTS *out) {
    const state rows = {of->state, of->w, of->entries, 0, 0, 0, 0};
    const state outputs = {of->free, of->w, (double *)out, 0, 0, 0, 0};
    filter steps = steps_of(of, 0);
#ifdef BASE
    const axes_change *const change = refer(of);
#endif
    int status = taken(of, in);
    const int is_read = status == OK;
    tick now = {.steps = &steps,
                .rows = is_read ? run_rows : no_rows,
                .outputs = write_outputs,
                .rows_at = &rows,
                .outputs_at = &outputs,
                .go_on = go_on,
                .state = of->state,
                .free = of->free,
                .totals = of->totals};
#ifdef BASE
    now.change = change;
#endif
    of->lost = -1;
    const int wrong = step(&now, 0, 0);
    if (is_read) status = reasons[wrong];
    of->has_rates = now.has_rates;
#ifdef BASE
    take_base(of, &steps, wrong);
#endif
    for (int j = N; status == UNDETERMINED && j-- > 0;)
        if (of->pivots[j] == 0) of->lost = free_places[j];
    if (status != OK) {
        memset(out, 0xff, sizeof *out); /* all bits set is not a number */
        return status;
    }
    memcpy(out->memory, of->u + N_S, sizeof out->memory);
#ifdef BASE
    tell_base(((const base *)of->base)->R, ((const base *)of->base)->pose, out->memory, out->base);
#endif
    out->nis = steps.nis;
    out->degrees = steps.degrees;
    out->log_likelihood = steps.log_likelihood;
    return OK;
}

/* What is known goes on by a time dt. */
static void pass(FILTER *of, double dt) {
    filter steps = steps_of(of, 0);
    tick now = {.steps = &steps, .dt = of->dt, .longest = LONGEST, .has_rates = of->has_rates};
#ifdef LAG
    now.kept = of->kept + (ptrdiff_t)*of->newest * KEPT_ROOM;
    go_on_and_keep(&now, dt);
#else
    go_on(&now, dt);
#endif
    of->dt = now.dt;
#ifdef BASE
    ((base *)of->base)->dt = dt;
#endif
}

/* The rows [R | z] of the last tick. */
static const double *known_rows(const FILTER *of) { return of->work; }
