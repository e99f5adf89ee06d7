/* A state of a program. in: its inputs; w: the workspace; out: the outputs. limits: the least size of each pivot; then
   the usual size of each output that is refined, of which a step may be a share; then, where there are usual states, the
   least and the largest of their inputs, and the least size of each number that is watched at them. residual: what
   `solve` has found. refine, refined: of a program for usual states, what computes the same outputs at others, and the
   state that it takes; 0 while there is none. */
typedef struct state {
    const double *in;
    double *w, *out;
    const double *limits;
    double residual;
    int (*refine)(const struct state *);
    const struct state *refined;
} state;

/* How an array of a batch lies: how many numbers a state has, what lies between states (0: all have the same), and
   between the numbers of one. */
typedef struct {
    ptrdiff_t n, step, across;
} block;

/* n states: where inputs and, after them, n_out arrays of outputs are, of doubles or of floats, how they lie, and the
   status of each state, as `solve` returns it; residuals may be none. */
typedef struct {
    ptrdiff_t n, n_out;
    void *const *arrays;
    const block *blocks;
    const double *limits;
    double *residuals;
    int *statuses;
} batch;

/* A batch on threads: what runs it; NumPy's type of its numbers, and their bytes; how many of its arrays must have a row
   for each state, 0 where Python has looked at them; the least number of states that a thread takes; doubles that each works in; for how many states and threads
   there is room; where they work. */
typedef struct {
    ptrdiff_t (*run)(const batch *, ptrdiff_t, ptrdiff_t, double *);
    batch at;
    const void *type;
    ptrdiff_t size, n_arrays, n_each, least, n_work, most_states, most_threads;
    double *w;
} call;

/* What `run_call` returns where it has computed nothing: an array is not as it must be; there is no room. */
enum refusal { NO_ROOM = -2, UNFIT = -1 };
