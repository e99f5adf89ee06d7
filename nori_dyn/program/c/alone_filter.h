/* A filter that stands alone, after tick.h, or with a lag window.h, and alone.h. */

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
    const int status = taken(of, in);
    tick now = tick_of(of, &steps, &rows, &outputs, status == OK, 0);
#ifdef BASE
    now.change = change;
#endif
    const int wrong = step(&now, 0, 0);
    of->has_rates = now.has_rates;
    return told(of, &steps, status, wrong, out);
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
