void prepare(const state *at);
int run(const state *at);
int solve(state *at);
int refine(const state *at);

extern ptrdiff_t n_batch;
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w);

ptrdiff_t run_call(call *what, uintptr_t arrays, ptrdiff_t N, int threads);
void forget_threads(void);
extern const void *array_class;
extern ptrdiff_t head, items;

void *tick(void *self, void *nothing);
void begin(uintptr_t pointer_of, uintptr_t keep, uintptr_t call_object, uintptr_t number);
