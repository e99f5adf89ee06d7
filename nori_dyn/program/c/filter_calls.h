int update(filter *at);
void propagate(filter *at);
int step(tick *now, tick *last, double dt);
void coast(tick *now);
void go_on(tick *now, double dt);

size_t judging_room(int n);
int judge(hypotheses *at, double dt);

void go_on_and_keep(tick *now, double dt);
void forward(const tick *now, const run *at);
void covariances(const run *at);
ptrdiff_t backward(const run *at, double *mean, double *covariance);
