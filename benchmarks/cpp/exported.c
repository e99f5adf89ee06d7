/* Exported C as a library: EXPORTED is its name, and states lie one after the other as its inputs do. */
#define JOINED_(a, b) a##_##b
#define JOINED(a, b) JOINED_(a, b)
#define OF(name) JOINED(EXPORTED, name)
#include HEADER

#include <string.h>

static OF(workspace) work;
static OF(outputs) out;

/* Solve n states so many times; return a status that is not zero where one was refused. */
int run(const double *numbers, int n, long repeats) {
    const OF(inputs) *in = (const OF(inputs) *)numbers;
    int refused = 0;
    for (long k = 0; k < repeats; ++k)
        for (int i = 0; i < n; ++i) refused |= (int)OF(solve)(in + i, &work, &out);
    return refused;
}

/* The answers to n states, one after the other. */
int answer(const double *numbers, int n, double *answers) {
    int refused = 0;
    for (int i = 0; i < n; ++i) {
        refused |= run(numbers + i * (long)(sizeof(OF(inputs)) / sizeof(double)), 1, 1);
        memcpy(answers + i * (long)(sizeof out / sizeof(double)), &out, sizeof out);
    }
    return refused;
}
