/* A tracker with a lag that stands alone, after window.h, alone.h and alone_filter.h: steps back through the last ticks.

   The unit says before: LAG, how many ticks an estimate is late; KEPT_ROOM, STATE_ROOM, U_ROOM, the numbers that a tick
   has in the arrays of the struct: what the largest contact state needs. With a base of->poses has of each tick its pose
   at it, and by what the axes turned before it. */

#include "slots.h"

#define POSE_ROOM 13

/* Takes a tick, a time dt after the last, of contact state `number`. */
static void hold(FILTER *of, const double *in, double dt, int number, OUTPUTS *out) {
    const int status = estimate(of, in, out);
    const ptrdiff_t k = *of->count > 0 ? ((ptrdiff_t)*of->newest + 1) % (LAG + 1) : 0;
    double *const slot = of->slots + k * SLOT_ROOM;
    filter steps = steps_of(of, 0);
    *of->newest = (double)k;
    if (*of->count <= LAG) *of->count += 1;
    slot[SLOT_NUMBER] = number;
    slot[SLOT_DT] = dt;
    slot[SLOT_RATES] = of->has_rates;
    slot[SLOT_STATUS] = status;
    slot[SLOT_NIS] = out->nis;
    slot[SLOT_DEGREES] = out->degrees;
    slot[SLOT_LOG_LIKELIHOOD] = out->log_likelihood;
    if (!of->has_rates) {
        int rank = 0;
        for (int j = 0; j < N; ++j) {
            const double pivot = of->work[j * (WIDTH + 1)];
            of->pivots[j] = pivot != 0 ? 1 / pivot : 0;
            rank += pivot != 0;
        }
        solve_rows(&steps, rank);
    }
    memcpy(of->states + k * STATE_ROOM, of->state, sizeof(double) * N_STATE);
    memcpy(of->means + k * U_ROOM, of->u, sizeof(double) * N);
#ifdef BASE
    const base *const at = (const base *)of->base;
    double *const pose = of->poses + k * POSE_ROOM;
    memcpy(pose, at->pose, sizeof at->pose);
    for (int i = 0; i < 9; ++i) pose[4 + i] = at->change.is_turn ? at->change.T[i] : i % 4 == 0;
#endif
}

/* The estimate of the memory at the last tick. */
static void last_mean(const FILTER *of, double *mean) {
    memcpy(mean, of->means + (ptrdiff_t)*of->newest * U_ROOM + N_S, sizeof(double) * K);
}

/* The estimate of tick k, given that of the memory at the next, which becomes that at tick k. Returns whether it could
   be found. */
static int back(FILTER *of, int k, int is_gap, double *mean) {
    const kept *const from = (const kept *)(of->kept + (ptrdiff_t)k * KEPT_ROOM);
#ifdef BASE
    const double *const T = of->poses + (ptrdiff_t)((k + 1) % (LAG + 1)) * POSE_ROOM + 4;
    for (double *x = mean + BASE; x < mean + BASE + 6; x += 3) {
        const double y[3] = {x[0], x[1], x[2]};
        for (int i = 0; i < 3; ++i) x[i] = T[i] * y[0] + T[3 + i] * y[1] + T[6 + i] * y[2];
    }
#endif
    if (!mean_back(from, is_gap ? N_V : 0, mean, of->late, (room *)of->room)) return 0;
    memcpy(mean, of->late + N_S, sizeof(double) * K);
    return 1;
}

/* The outputs of tick k, by its estimate in `late`; returns its status. */
static int tell_late(FILTER *of, int k, OUTPUTS *out) {
    const state outputs = {of->free, of->w, (double *)out, 0, 0, 0, 0};
    const double *const slot = of->slots + (ptrdiff_t)k * SLOT_ROOM;
    tick now = {.outputs = run_outputs,
                .outputs_at = &outputs,
                .state = of->states + (ptrdiff_t)k * STATE_ROOM,
                .free = of->free};
    if (slot[SLOT_RATES] == 0) return (int)slot[SLOT_STATUS];
    of->lost = -1;
    for (int j = N; j-- > 0;)
        if (!is_finite(of->late[j])) of->lost = free_places[j];
    if (of->lost >= 0) return UNDETERMINED;
    if (tell(&now, of->late)) return SMALL_PIVOT;
    memcpy(out->memory, of->late + N_S, sizeof out->memory);
#ifdef BASE
    tell_base(now.state + ROOT_Q + 3, of->poses + (ptrdiff_t)k * POSE_ROOM, out->memory, out->base);
#endif
    out->nis = slot[SLOT_NIS];
    out->degrees = slot[SLOT_DEGREES];
    out->log_likelihood = slot[SLOT_LOG_LIKELIHOOD];
    return OK;
}
