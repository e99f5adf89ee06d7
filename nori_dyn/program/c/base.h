/* The reference of a floating base whose state is in the memory, after alone.h: what a tick is given of the root in place
   of what its user says. See nori_dyn/filtering/base_reference.py, with which it agrees.

   The unit says before: BASE, the first number of the state in the memory: velocity, gravity, angular velocity, three
   each, the first two along the axes of the reference; ROOT_Q, ROOT_QD: where the root is in a state; SIZE_WEIGHT, which
   weight is that of gravity's length, or -1; SIZE_SIGMA, TILT, SURE, SECOND_ORDER, ROUNDING, NOISE, TURNING, FADED; base_gravity: that of the
   world; base_sigmas: deviations of the state of which nothing is known. */

/* The axes: a quaternion from base coordinates to them, and their angular velocity; the estimate of the state after the
   last tick, the covariance of gravity in it; of the base in the world position and velocity, and how far it has turned
   about the vertical beyond the axes, with the rate of that; the time since the last tick. Then, whether these are known; whether the last tick had no readings; the weight of the row of gravity's length
   in this tick. */
typedef struct {
    double R[4], w[3], last[9], held[9], position[3], velocity[3], yaw, yaw_rate, dt;
    double is_known, has_velocity, missed, size_weight;
} base;

_Static_assert(sizeof(base) == sizeof(((FILTER *)0)->base), "there is room");

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* c = a b, quaternions. */
static void composed(const double *a, const double *b, double *c) {
    const double found[4] = {
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - dot(a, b),
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
    const double a = sqrt(dot(G, G)), b = sqrt(dot(base_gravity, base_gravity)), c = a * b;
    const double *const g = base_gravity;
    double norm;
    q[0] = q[1] = q[2] = 0;
    q[3] = 1;
    if (!(a > ROUNDING * b)) return;
    if (dot(G, g) < (-1 + 1e-12) * c) { /* about any axis across */
        const int i = fabs(g[0]) <= fabs(g[1]) ? fabs(g[0]) <= fabs(g[2]) ? 0 : 2 : fabs(g[1]) <= fabs(g[2]) ? 1 : 2;
        q[(i + 1) % 3] = g[(i + 2) % 3];
        q[(i + 2) % 3] = -g[(i + 1) % 3];
        q[3] = 0;
    } else {
        q[0] = (G[1] * g[2] - G[2] * g[1]) / c;
        q[1] = (G[2] * g[0] - G[0] * g[2]) / c;
        q[2] = (G[0] * g[1] - G[1] * g[0]) / c;
        q[3] = 1 + dot(G, g) / c;
    }
    norm = sqrt(dot(q, q) + q[3] * q[3]);
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
    return cov[0] + cov[4] + cov[8] - within / dot(G, G);
}

/* The columns of a part of the prior are turned, and its rows made triangular again. */
static void turn_part(const double *q, int part, double *R, double *z) {
    for (int i = 0; i < part + 3; ++i) turn(q, 1, R + K * i + part);
    for (int j = part; j < part + 2; ++j)
        for (int i = part + 2; i > j; --i) { /* row i is turned into the one above */
            double *const above = R + K * (i - 1), *const below = R + K * i;
            const double size = hypot(above[j], below[j]);
            const double c = size > 0 ? above[j] / size : 1, s = size > 0 ? below[j] / size : 0;
            for (int l = j; l < K; ++l) {
                const double x = above[l], y = below[l];
                above[l] = c * x + s * y;
                below[l] = l > j ? c * y - s * x : 0;
            }
            const double x = z[i - 1], y = z[i];
            z[i - 1] = c * x + s * y;
            z[i] = c * y - s * x;
        }
}

/* The axes are turned along gravity, where that is sure enough, and the prior of the memory with them. */
static void turn_axes(FILTER *of) {
    base *const at = (base *)of->base;
    double G[K], cov[9], q[4];
    memcpy(G, of->z, sizeof G);
    for (int i = K; i-- > BASE + 3;) {
        for (int l = i + 1; l < K; ++l) G[i] -= of->R[K * i + l] * G[l];
        G[i] /= of->R[K * i + i];
    }
    const double *const g = G + BASE + 3;
    if (!covariance_of(of->R + (K + 1) * (BASE + 3), K, K - BASE - 3, cov)) return;
    if (!(dot(g, g) > 0) || !(across(g, cov) < SURE * SURE * dot(g, g))) return;
    upright(g, q);
    turn_part(q, BASE, of->R, of->z);
    turn_part(q, BASE + 3, of->R, of->z);
    composed(q, at->R, at->R);
    turn(q, 1, at->last);
    turn(q, 1, at->last + 3);
    for (int i = 0; i < 3; ++i) turn(q, 1, cov + 3 * i);
    for (int j = 0; j < 3; ++j) {
        double column[3] = {cov[j], cov[3 + j], cov[6 + j]};
        turn(q, 1, column);
        for (int i = 0; i < 3; ++i) at->held[3 * i + j] = column[i];
    }
}

/* Through a time whose motion is not known the base is forgotten, but for gravity, which turns by no more than a base. */
static void bridge(FILTER *of) {
    base *const at = (base *)of->base;
    const double size = dot(base_gravity, base_gravity), most = base_sigmas[3] * base_sigmas[3];
    const double angle = fmin((sqrt(dot(at->w, at->w)) + TURNING) * at->dt, 1);
    double highest = 0, U[9], *const cov = at->held;
    for (int i = 0; i < 3; ++i) {
        cov[4 * i] += size * angle * angle;
        highest = fmax(highest, cov[4 * i]);
    }
    for (int i = 0; i < 9; ++i) cov[i] *= fmin(1, most / highest);
    memset(of->R + K * BASE, 0, sizeof(double) * 9 * K);
    memset(of->z + BASE, 0, sizeof(double) * 9);
    for (int i = 0; i < 9; ++i) of->R[(K + 1) * (BASE + i)] = 1 / base_sigmas[i];
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
            for (int l = i + 1; l <= j; ++l) x -= U[3 * i + l] * of->R[K * (BASE + 3 + l) + BASE + 3 + j];
            of->R[K * (BASE + 3 + i) + BASE + 3 + j] = x / U[4 * i];
        }
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) of->z[BASE + 3 + i] += of->R[K * (BASE + 3 + i) + BASE + 3 + j] * at->last[3 + j];
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
    return at->is_known && dot(G, base_gravity) < cos(TILT) * sqrt(dot(G, G)) * sqrt(dot(base_gravity, base_gravity));
}

/* The quaternion q that makes gravity upright, then turned by the yaw. */
static void turn_by_yaw(const base *at, double *q) {
    const double size = -sqrt(dot(base_gravity, base_gravity)), s = sin(at->yaw / 2) / size;
    const double yaw[4] = {base_gravity[0] * s, base_gravity[1] * s, base_gravity[2] * s, cos(at->yaw / 2)};
    composed(yaw, q, q);
}

/* The reference of the tick that comes. */
static void refer(FILTER *of) {
    base *const at = (base *)of->base;
    if (of->last >= 0 && (at->missed || at->dt > LONGEST))
        bridge(of);
    else if (is_off(at))
        turn_axes(of);
    if (of->last >= 0) {
        at->yaw += at->dt * at->yaw_rate;
        const double angle = sqrt(dot(at->w, at->w)) * at->dt;
        const double share = angle > 1e-3 ? sin(angle / 2) / angle * at->dt : at->dt * (0.5 - angle * angle / 48);
        const double q[4] = {at->w[0] * share, at->w[1] * share, at->w[2] * share, cos(angle / 2)};
        composed(at->R, q, at->R);
        const double norm = sqrt(dot(at->R, at->R) + at->R[3] * at->R[3]);
        for (int i = 0; i < 4; ++i) at->R[i] /= norm;
        if (at->is_known) memcpy(at->w, at->last + 6, sizeof at->w);
        for (int i = 0; i < 3; ++i) at->position[i] += at->dt * at->velocity[i];
    }
    at->size_weight = 0;
    if (at->is_known && !is_off(at)) {
        const double *const cov = at->held, least = SIZE_SIGMA * SIZE_SIGMA;
        const double off = across(base_gravity, cov), along = cov[0] + cov[4] + cov[8] - off;
        if (off / (2 * sqrt(dot(base_gravity, base_gravity))) < SECOND_ORDER * SIZE_SIGMA && along > FADED * least)
            at->size_weight = 1 / least - 1 / along;
    }
}

/* Writes it into a state: q, qd, y, weights. */
static void write_base(const FILTER *of, double *to) {
    const base *const at = (const base *)of->base;
    for (int i = 0; i < 3; ++i) {
        to[ROOT_Q + i] = 0;
        to[ROOT_QD + i] = at->w[i];
        to[ROOT_QD + 3 + i] = 0;
    }
    memcpy(to + ROOT_Q + 3, at->R, sizeof at->R);
    if (SIZE_WEIGHT >= 0) to[N_STATE + SIZE_WEIGHT] = at->size_weight;
}

/* Takes the estimate of a tick, by the status of that. */
static void take_base(FILTER *of, int wrong) {
    base *const at = (base *)of->base;
    double q[4], v[3];
    at->missed = !of->has_rates;
    if (at->missed || wrong == UNDETERMINED) return;
    memcpy(at->last, of->u + N_S + BASE, sizeof at->last);
    at->is_known = 1;
    double cov[9], beyond[3];
    upright(at->last + 3, q);
    for (int i = 0; i < 3; ++i) beyond[i] = at->last[6 + i] - at->w[i];
    turn(at->R, 1, beyond);
    turn(q, 1, beyond);
    at->yaw_rate = -dot(beyond, base_gravity) / sqrt(dot(base_gravity, base_gravity));
    if (covariance_of(of->work + (WIDTH + 1) * (N_S + BASE + 6), WIDTH, K - BASE - 6, cov)) {
        const double noise = NOISE * (cov[0] + cov[4] + cov[8]), square = dot(at->last + 6, at->last + 6);
        for (int i = 6; i < 9; ++i) at->last[i] *= 1 - noise / fmax(square, noise);
    }
    covariance_of(of->work + (WIDTH + 1) * (N_S + BASE + 3), WIDTH, K - BASE - 3, at->held);
    turn_by_yaw(at, q);
    memcpy(v, at->last, sizeof v);
    turn(q, 1, v);
    for (int i = 0; i < 3; ++i) {
        if (at->has_velocity) at->position[i] += at->dt / 2 * (v[i] - at->velocity[i]);
        at->velocity[i] = v[i];
    }
    at->has_velocity = 1;
}

/* The memory, or a column of a root of its covariance, along the axes of the base in place of those of the reference. */
static void to_base(const FILTER *of, double *m) {
    turn(((const base *)of->base)->R, -1, m + BASE);
    turn(((const base *)of->base)->R, -1, m + BASE + 3);
}

/* The base: position and quaternion in the world, then velocity, gravity and angular velocity. */
static void tell_base(const FILTER *of, double *out) {
    const base *const at = (const base *)of->base;
    double m[K], q[4];
    memcpy(m, of->u + N_S, sizeof m);
    to_base(of, m);
    upright(at->last + 3, q);
    turn_by_yaw(at, q);
    composed(q, at->R, q);
    memcpy(out, at->position, sizeof at->position);
    memcpy(out + 3, q, sizeof q);
    memcpy(out + 7, m + BASE, sizeof at->last);
}
