/* Threads for batches, which wait for parts of one, and sleep between batches. A batch is cut at multiples of the lanes, so
   that what is computed does not depend on who computes it. Parts go to whoever asks next, who called among them: a
   thread that the system wakes late takes no part, and nobody waits for it. */

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "program.h"
#include "arrays.h"

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void)0)
#endif
#define READ(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define WRITE(x, y) __atomic_store_n(&(x), y, __ATOMIC_SEQ_CST)
#define ADD(x, y) __atomic_fetch_add(&(x), y, __ATOMIC_SEQ_CST)
#define APART __attribute__((aligned(64))) /* in a line of the cache of its own */

enum { MOST = 255, STACK = 1 << 23, AWAKE = 1000000 }; /* threads; bytes; nanoseconds before one sleeps */
enum { FREE, TAKEN, CALLED, BUSY, DONE };

/* What is left of the states, counted by the least that a thread takes: from the first on, up to the last. */
typedef struct {
    uint32_t first, last;
} range;

typedef struct {
    const call *what;
    ptrdiff_t threads;
    APART range left;
    ptrdiff_t found;
} task;

/* Who calls takes one that is FREE, writes what there is to do, and calls it. Only the thread itself goes from CALLED
   to BUSY and DONE; who called may take it back before that, and frees it in the end. */
typedef struct {
    APART int state;
    int asleep, number; /* how many sleep until it changes */
    task *what;
    APART pthread_mutex_t lock;
    pthread_cond_t changed;
} worker;

static worker workers[MOST];
static int n_workers;
static pthread_mutex_t hiring = PTHREAD_MUTEX_INITIALIZER;

static int change(worker *one, int from, int to) {
    return __atomic_compare_exchange_n(&one->state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void tell(worker *one, int state) {
    WRITE(one->state, state);
    if (!READ(one->asleep)) return; /* who goes to sleep says so before it looks again */
    pthread_mutex_lock(&one->lock);
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->lock);
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Who is woken too late stays awake for the next call: else small batches would never be helped. */
static void await(worker *one, int state) {
    for (;;) {
        long long until = 0;
        do {
            for (int k = 0; k < 50; ++k) {
                if (READ(one->state) == state) return;
                PAUSE();
            }
            until = until ? until : now() + AWAKE;
        } while (now() < until);
        pthread_mutex_lock(&one->lock);
        ADD(one->asleep, 1);
        if (READ(one->state) != state) pthread_cond_wait(&one->changed, &one->lock);
        ADD(one->asleep, -1);
        pthread_mutex_unlock(&one->lock);
    }
}

/* Takes what is left part by part: three quarters of what is even for all, but no less than the least. Every other
   thread begins at the end: what it fetched in one batch it has at hand in the next. */
static void take_part(task *t, int number) {
    const call *const what = t->what;
    const ptrdiff_t n = what->at.n, least = what->least;
    ptrdiff_t found = 0;
    range left, after;
    __atomic_load(&t->left, &left, __ATOMIC_SEQ_CST);
    while (left.first < left.last) {
        const uint32_t even = (uint32_t)((left.last - left.first) * 3 / (4 * t->threads)), part = even ? even : 1;
        after = left;
        if (number % 2)
            after.last -= part;
        else
            after.first += part;
        if (!__atomic_compare_exchange(&t->left, &left, &after, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
        const ptrdiff_t from = least * (number % 2 ? after.last : left.first), to = from + least * part;
        found += what->run(&what->at, from, to < n ? to : n, what->w + what->n_work * number);
        __atomic_load(&t->left, &left, __ATOMIC_SEQ_CST);
    }
    ADD(t->found, found);
}

static void *serve(void *argument) {
    worker *const me = argument;
    for (;;) {
        await(me, CALLED);
        if (!change(me, CALLED, BUSY)) continue;
        take_part(me->what, me->number);
        tell(me, DONE);
    }
    return 0; /* never */
}

static int hire(worker *one) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before; /* signals are for the threads that are there */
    if (pthread_attr_init(&attributes)) return 0;
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_mutex_init(&one->lock, 0);
    pthread_cond_init(&one->changed, 0);
    one->state = TAKEN;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, &attributes, serve, one);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    pthread_attr_destroy(&attributes);
    return !failed;
}

/* The next one that is free from some place on, taken; a new one where there is none; 0 where there can be none. */
static worker *take(int *place) {
    for (; *place < READ(n_workers); ++*place)
        if (change(workers + *place, FREE, TAKEN)) return workers + (*place)++;
    worker *one = 0;
    pthread_mutex_lock(&hiring);
    if (n_workers < MOST && hire(workers + n_workers)) {
        one = workers + n_workers;
        WRITE(n_workers, n_workers + 1);
    }
    pthread_mutex_unlock(&hiring);
    return one;
}

/* Runs all states in parts of a multiple of the least, with a workspace for each thread; returns the sum of what the
   parts return. */
static ptrdiff_t run_parts(const call *what, int threads) {
    task t = {what, threads, {0, (uint32_t)((what->at.n + what->least - 1) / what->least)}, 0};
    worker *helpers[MOST];
    int n_helpers = 0, place = 0;
    while (n_helpers < threads - 1 && n_helpers < MOST && (n_helpers + 1) * what->least < what->at.n) {
        worker *const one = take(&place);
        if (!one) break;
        one->number = n_helpers + 1;
        one->what = &t;
        helpers[n_helpers++] = one;
        tell(one, CALLED);
    }
    take_part(&t, 0);
    for (int k = 0; k < n_helpers; ++k) {
        if (!change(helpers[k], CALLED, TAKEN)) await(helpers[k], DONE);
        WRITE(helpers[k]->state, FREE);
    }
    return t.found;
}

/* Runs N states of arrays that a tuple holds; returns with how many something is wrong, NO_ROOM, or UNFIT where an
   array is not as `lay` wants it. */
ptrdiff_t run_call(call *what, uintptr_t arrays, ptrdiff_t N, int threads) {
    if (N > what->most_states || threads > what->most_threads) return NO_ROOM;
    if (N < 1 || !lay((const char *)arrays, what, N)) return UNFIT;
    what->at.n = N;
    return threads > 1 && what->least < N ? run_parts(what, threads) : what->run(&what->at, 0, N, what->w);
}

/* Of a process that was just forked: none of the threads is in it. */
void forget_threads(void) {
    n_workers = 0;
    pthread_mutex_init(&hiring, 0);
}
