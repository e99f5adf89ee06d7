/* A batch state by state, after `one_state.h`: of programs that take less time with their rows than across states. */

/* How many doubles `run_batch` works in: whole vectors, so that each thread's begin with one. */
ptrdiff_t n_batch = (N_WORK + N_INPUTS + N_OUTPUTS + LANES - 1) / LANES * LANES;

/* As `solve`, for the states from one up to another; returns with how many something is wrong. */
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w) {
    double *const in = w + N_WORK, *const out = in + N_INPUTS;
    state one = {in, w, out, at->limits, 0, 0, 0};
    ptrdiff_t found = 0;
    prepare(&one);
    for (ptrdiff_t s = from; s < to; ++s) {
        for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a) {
            const block b = at->blocks[a];
            const double *const own = at->arrays[a] + b.step * s;
            for (ptrdiff_t k = 0; k < b.n; ++k) in[first + k] = own[b.across * k];
        }
        at->statuses[s] = solve(&one);
        found += at->statuses[s] != 0;
        if (at->residuals) at->residuals[s] = one.residual;
        for (ptrdiff_t a = N_ARRAYS, first = 0; a < N_ARRAYS + at->n_out; first += at->blocks[a].n, ++a) {
            const block b = at->blocks[a];
            double *const own = at->arrays[a] + b.step * s;
            for (ptrdiff_t k = 0; k < b.n; ++k) own[b.across * k] = out[first + k];
        }
    }
    return found;
}
