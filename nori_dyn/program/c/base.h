/* The reference of a floating base whose state is in the memory, after alone.h: what a tick is given of the root in place
   of what its user says. See nori_dyn/filtering/base_reference.py, with which it agrees.

   The unit says before: BASE, the first number of the state in the memory: velocity, gravity, angular velocity, three
   each, the first two along the axes of the reference; ROOT_Q, ROOT_QD: where the root is in a state; SIZE_WEIGHT, which
   weight is that of gravity's length, or -1; SIZE_SIGMA, TILT, SURE, SECOND_ORDER, ROUNDING, NOISE, TURNING, FADED;
   base_gravity: that of the world; base_sigmas: deviations of the state of which nothing is known. */

/* The axes: a quaternion from base coordinates to them, and their angular velocity; the estimate of the state after the
   last tick, the covariance of gravity in it; of the base in the world position, and how far it has turned about the
   vertical beyond the axes; the rates of these; its angular velocity beyond theirs, along them; the time since the last
   tick. Then, whether these are known; whether the last tick had no readings; the weight of the row of
   gravity's length in this tick; what was done to what is known before it. */
typedef struct {
    double R[4], w[3], last[9], held[9], pose[4], velocity[3], yaw_rate, beyond[3], dt;
    double is_known, has_velocity, missed, size_weight;
    axes_change change;
} base;

_Static_assert(sizeof(base) == sizeof(((FILTER *)0)->base), "there is room");

static double inner(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* c = a b, quaternions. */
static void composed(const double *a, const double *b, double *c) {
    const double found[4] = {
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - inner(a, b),
    };
    memcpy(c, found, sizeof found);
}

/* v is turned by a quaternion, or with `sign` -1 back. */
static void turn(const double *q, double sign, double *v) {
    const double x = sign * q[0], y = sign * q[1], z = sign * q[2], s = q[3];
    const double t[3] = {2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])};
    v[0] += s * t[0] + y * t[2] - z * t[1];
    v[1] += s * t[1] + z * t[0] - x * t[2];
    v[2] += s * t[2] + x * t[1] - y * t[0];
}

/* The quaternion of the smallest rotation that turns G along gravity; none where G is 0. */
static void upright(const double *G, double *q) {
    const double a = sqrt(inner(G, G)), b = sqrt(inner(base_gravity, base_gravity)), c = a * b;
    const double *const g = base_gravity;
    double norm;
    q[0] = q[1] = q[2] = 0;
    q[3] = 1;
    if (!(a > ROUNDING * b)) return;
    if (inner(G, g) < (-1 + 1e-12) * c) { /* about any axis across */
        const int i = fabs(g[0]) <= fabs(g[1]) ? fabs(g[0]) <= fabs(g[2]) ? 0 : 2 : fabs(g[1]) <= fabs(g[2]) ? 1 : 2;
        q[(i + 1) % 3] = g[(i + 2) % 3];
        q[(i + 2) % 3] = -g[(i + 1) % 3];
        q[3] = 0;
    } else {
        q[0] = (G[1] * g[2] - G[2] * g[1]) / c;
        q[1] = (G[2] * g[0] - G[0] * g[2]) / c;
        q[2] = (G[0] * g[1] - G[1] * g[0]) / c;
        q[3] = 1 + inner(G, g) / c;
    }
    norm = sqrt(inner(q, q) + q[3] * q[3]);
    for (int i = 0; i < 4; ++i) q[i] /= norm;
}

/* The covariance of three numbers, by rows [R | z] of the n numbers of the memory from these on. Returns whether it is
   known. */
static int covariance_of(const double *R, int stride, int n, double *cov) {
    double root[3][K];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < n; ++j) { /* R^T x = e_i */
            double x = i == j;
            for (int l = 0; l < j; ++l) x -= R[l * stride + j] * root[i][l];
            if (!R[j * stride + j]) return 0;
            root[i][j] = x / R[j * stride + j];
        }
    for (int i = 0; i < 9; ++i) {
        cov[i] = 0;
        for (int j = 0; j < n; ++j) cov[i] += root[i / 3][j] * root[i % 3][j];
    }
    return 1;
}

/* The variance of gravity's direction, both ways together, times its square. */
static double across(const double *G, const double *cov) {
    double within = 0;
    for (int i = 0; i < 9; ++i) within += G[i / 3] * cov[i] * G[i % 3];
    return cov[0] + cov[4] + cov[8] - within / inner(G, G);
}

/* The axes are turned along gravity as it is by now, where that is sure enough. Returns whether they are. */
static int turn_axes(base *at) {
    double *const G = at->last + 3, *const cov = at->held, *const x = at->beyond, now[3], q[4];
    if (!(inner(G, G) > 0) || !(across(G, cov) < SURE * SURE * inner(G, G))) return 0;
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, l = (i + 2) % 3;
        now[i] = G[i] - at->dt * (x[j] * G[l] - x[l] * G[j]);
    }
    upright(now, q);
    for (int j = 0; j < 3; ++j) {
        double axis[3] = {j == 0, j == 1, j == 2};
        turn(q, 1, axis);
        for (int i = 0; i < 3; ++i) at->change.T[3 * i + j] = axis[i];
    }
    composed(q, at->R, at->R);
    turn(q, 1, at->last);
    turn(q, 1, G);
    for (int i = 0; i < 3; ++i) turn(q, 1, cov + 3 * i);
    for (int j = 0; j < 3; ++j) {
        double column[3] = {cov[j], cov[3 + j], cov[6 + j]};
        turn(q, 1, column);
        for (int i = 0; i < 3; ++i) cov[3 * i + j] = column[i];
    }
    return 1;
}

/* Through a time whose motion is not known the base is forgotten, but for gravity, which turns by no more than a base. */
static void bridge(base *at) {
    const double size = inner(base_gravity, base_gravity), most = base_sigmas[3] * base_sigmas[3];
    const double angle = fmin((sqrt(inner(at->w, at->w)) + TURNING) * at->dt, 1);
    double highest = 0, U[9], *const cov = at->held, *const R = at->change.R, *const z = at->change.z + 3;
    for (int i = 0; i < 3; ++i) {
        cov[4 * i] += size * angle * angle;
        highest = fmax(highest, cov[4 * i]);
    }
    for (int i = 0; i < 9; ++i) cov[i] *= fmin(1, most / highest);
    for (int i = 0; i < 9; ++i) {
        at->change.z[i] = 0;
        for (int j = 0; j < 9; ++j) R[9 * i + j] = i == j ? 1 / base_sigmas[i] : 0;
    }
    if (!at->is_known) return;
    /* cov = L L^T from the last row up, L upper triangular: then R = L^-1 is, too. */
    memset(U, 0, sizeof U);
    for (int j = 3; j-- > 0;)
        for (int i = j + 1; i-- > 0;) {
            double x = cov[3 * i + j];
            for (int l = j + 1; l < 3; ++l) x -= U[3 * i + l] * U[3 * j + l];
            U[3 * i + j] = i == j ? sqrt(x) : x / U[4 * j];
        }
    for (int j = 0; j < 3; ++j)
        for (int i = j + 1; i-- > 0;) { /* U x = e_j */
            double x = i == j;
            for (int l = i + 1; l <= j; ++l) x -= U[3 * i + l] * R[9 * (3 + l) + 3 + j];
            R[9 * (3 + i) + 3 + j] = x / U[4 * i];
        }
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) z[i] += R[9 * (3 + i) + 3 + j] * at->last[3 + j];
}

/* What is known at first, where something is, tells the first axes. */
static void begin_base(FILTER *of) {
    base *const at = (base *)of->base;
    at->R[3] = at->is_known = 1;
    for (int i = 0; i < 9; ++i) {
        const double root = first_root[BASE + i];
        if (!(root > 0)) at->is_known = 0;
        at->last[i] = root > 0 ? first_z[BASE + i] / root : 0;
    }
    for (int i = 0; i < 3; ++i) {
        const double sigma = at->is_known ? 1 / first_root[BASE + 3 + i] : base_sigmas[3 + i];
        at->held[4 * i] = sigma * sigma;
        if (at->is_known) at->w[i] = at->last[6 + i];
    }
}

static int is_off(const base *at) {
    const double *const G = at->last + 3;
    return at->is_known &&
           inner(G, base_gravity) < cos(TILT) * sqrt(inner(G, G)) * sqrt(inner(base_gravity, base_gravity));
}

/* The quaternion that makes gravity G upright, then turned by a yaw. */
static void upright_by_yaw(const double *G, double yaw, double *q) {
    const double size = -sqrt(inner(base_gravity, base_gravity)), s = sin(yaw / 2) / size;
    const double by[4] = {base_gravity[0] * s, base_gravity[1] * s, base_gravity[2] * s, cos(yaw / 2)};
    upright(G, q);
    composed(by, q, q);
}

/* The reference of the tick that comes. Returns what is done to what is known before it, NULL where nothing is. */
static const axes_change *refer(FILTER *of) {
    base *const at = (base *)of->base;
    const int is_gap = of->last >= 0 && (at->missed || at->dt > LONGEST);
    at->change.is_turn = !is_gap && is_off(at) && turn_axes(at);
    if (is_gap) bridge(at);
    if (of->last >= 0) {
        at->pose[3] += at->dt * at->yaw_rate;
        const double angle = sqrt(inner(at->w, at->w)) * at->dt;
        const double share = angle > 1e-3 ? sin(angle / 2) / angle * at->dt : at->dt * (0.5 - angle * angle / 48);
        const double q[4] = {at->w[0] * share, at->w[1] * share, at->w[2] * share, cos(angle / 2)};
        composed(at->R, q, at->R);
        const double norm = sqrt(inner(at->R, at->R) + at->R[3] * at->R[3]);
        for (int i = 0; i < 4; ++i) at->R[i] /= norm;
        if (at->is_known) memcpy(at->w, at->last + 6, sizeof at->w);
        for (int i = 0; i < 3; ++i) at->pose[i] += at->dt * at->velocity[i];
    }
    at->size_weight = 0;
    if (at->is_known && !is_off(at)) {
        const double *const cov = at->held, least = SIZE_SIGMA * SIZE_SIGMA;
        const double off = across(base_gravity, cov), along = cov[0] + cov[4] + cov[8] - off;
        if (off / (2 * sqrt(inner(base_gravity, base_gravity))) < SECOND_ORDER * SIZE_SIGMA && along > FADED * least)
            at->size_weight = 1 / least - 1 / along;
    }
    return is_gap || at->change.is_turn ? &at->change : NULL;
}

/* Writes it into a state: q, qd, y, weights. */
static void write_base(const FILTER *of, double *to) {
    const base *const at = (const base *)of->base;
    for (int i = 0; i < 3; ++i) {
        to[ROOT_Q + i] = at->is_known ? at->last[i] : 0;
        to[ROOT_QD + i] = at->w[i];
        to[ROOT_QD + 3 + i] = 0;
    }
    memcpy(to + ROOT_Q + 3, at->R, sizeof at->R);
    if (SIZE_WEIGHT >= 0) to[N_STATE + SIZE_WEIGHT] = at->size_weight;
}

/* Takes the estimate of a tick, by what that returned, see `step`. */
static void take_base(FILTER *of, const filter *steps, int wrong) {
    base *const at = (base *)of->base;
    const double *const R = steps->work + (WIDTH + 1) * (N_S + BASE);
    double q[4], v[3], cov[9], beyond[3];
    at->missed = wrong == 1;
    if (wrong == 1 || wrong == 2) return;
    memcpy(at->last, steps->u + N_S + BASE, sizeof at->last);
    at->is_known = 1;
    upright(at->last + 3, q);
    for (int i = 0; i < 3; ++i) beyond[i] = at->last[6 + i] - at->w[i];
    turn(at->R, 1, beyond);
    memcpy(at->beyond, beyond, sizeof beyond);
    turn(q, 1, beyond);
    at->yaw_rate = -inner(beyond, base_gravity) / sqrt(inner(base_gravity, base_gravity));
    if (covariance_of(R + (WIDTH + 1) * 6, WIDTH, K - BASE - 6, cov)) {
        const double noise = NOISE * (cov[0] + cov[4] + cov[8]), square = inner(at->last + 6, at->last + 6);
        for (int i = 6; i < 9; ++i) at->last[i] *= 1 - noise / fmax(square, noise);
    }
    covariance_of(R + (WIDTH + 1) * 3, WIDTH, K - BASE - 3, at->held);
    upright_by_yaw(at->last + 3, at->pose[3], q);
    memcpy(v, at->last, sizeof v);
    turn(q, 1, v);
    for (int i = 0; i < 3; ++i) {
        if (at->has_velocity) at->pose[i] += at->dt / 2 * (v[i] - at->velocity[i]);
        at->velocity[i] = v[i];
    }
    at->has_velocity = 1;
}

/* The memory, or a column of a root of its covariance, along the axes of the base in place of those of a reference. */
static void to_base(const double *R, double *m) {
    turn(R, -1, m + BASE);
    turn(R, -1, m + BASE + 3);
}

/* Writes the estimate m of the memory at a tick, by the axes R and the pose of then; and the base: position and
   quaternion in the world, then velocity, gravity and angular velocity. */
static void tell_base(const double *R, const double *pose, double *m, double *out) {
    double q[4];
    upright_by_yaw(m + BASE + 3, pose[3], q);
    composed(q, R, q);
    to_base(R, m);
    memcpy(out, pose, sizeof(double) * 3);
    memcpy(out + 3, q, sizeof q);
    memcpy(out + 7, m + BASE, sizeof(double) * 9);
}
