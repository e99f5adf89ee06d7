/* A batch state by state, after `one_state.h`: of programs that take less time with their rows than across states. */

#include "stream.h"

/* Whole vectors, so that workspace, inputs and outputs begin with one. */
#define WHOLE(n) (((n) + LANES - 1) / LANES * LANES)

/* How many doubles `run_batch` works in. */
ptrdiff_t n_batch = WHOLE(N_WORK) + WHOLE(N_INPUTS) + WHOLE(N_OUTPUTS);

/* Copies the n numbers of a state: across lies between them, in one place or the other. */
static inline void copy(ptrdiff_t n, const double *from, ptrdiff_t across, double *to, ptrdiff_t there) {
    if (across == 1 && there == 1)
        memcpy(to, from, (size_t)n * sizeof(double));
    else
        for (ptrdiff_t k = 0; k < n; ++k) to[there * k] = from[across * k];
}

/* As `solve`, for the states from one up to another; returns with how many something is wrong. */
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w) {
    double *const in = w + WHOLE(N_WORK), *const out = in + WHOLE(N_INPUTS);
    state one = {in, w, out, at->limits, 0, 0, 0};
    ptrdiff_t found = 0;
    prepare(&one);
    for (ptrdiff_t s = from; s < to; ++s) {
        for (ptrdiff_t a = 0, first = 0; a < N_ARRAYS; first += at->blocks[a].n, ++a) {
            const block b = at->blocks[a];
            copy(b.n, (const double *)at->arrays[a] + b.step * s, b.across, in + first, 1);
        }
        at->statuses[s] = solve(&one);
        found += at->statuses[s] != 0;
        if (at->residuals) at->residuals[s] = one.residual;
        for (ptrdiff_t a = N_ARRAYS, first = 0; a < N_ARRAYS + at->n_out; first += at->blocks[a].n, ++a) {
            const block b = at->blocks[a];
            double *const own = (double *)at->arrays[a] + b.step * s;
            if (b.across == 1 && ARE_MANY(at->n, b.n))
                stream(b.n, out + first, own);
            else
                copy(b.n, out + first, 1, own, b.across);
        }
    }
    STREAMED();
    return found;
}
