"""Threads for batches: some that wait in C for parts of one, and sleep between batches.

A batch is cut at multiples of the lanes, so that what is computed does not depend on who computes it. Parts go to
whoever asks next, the caller among them: a thread that the system wakes late takes no part, and nobody waits for it.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from nori_dyn.program.compiler import Compiler, load_library

PARTS = """
ptrdiff_t run_parts(ptrdiff_t (*run)(const batch *, ptrdiff_t, ptrdiff_t, double *), const batch *job, ptrdiff_t n,
                    ptrdiff_t least, double *w, ptrdiff_t n_work, int threads);
void forget_threads(void);
"""

SOURCE = """\
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void)0)
#endif
#define READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define WRITE(x, y) __atomic_store_n(&(x), y, __ATOMIC_RELEASE)
#define ADD(x, y) __atomic_fetch_add(&(x), y, __ATOMIC_ACQ_REL)

enum { MOST = 255, STACK = 1 << 23, AWAKE = 100000 }; /* threads; bytes; nanoseconds before one sleeps */
enum { FREE, TAKEN, CALLED, BUSY, DONE };

typedef ptrdiff_t routine(const void *, ptrdiff_t, ptrdiff_t, double *);

typedef struct {
    routine *run;
    const void *job;
    ptrdiff_t n, least, threads, next, found, n_work;
    double *w;
} task;

/* Who calls takes one that is FREE, writes what there is to do, and calls it. Only the thread itself goes from CALLED
   to BUSY and DONE; who called may take it back before that, and frees it in the end. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int state, number;
    task *what;
} worker;

static worker workers[MOST];
static int n_workers;
static pthread_mutex_t hiring = PTHREAD_MUTEX_INITIALIZER;

static int change(worker *one, int from, int to) {
    return __atomic_compare_exchange_n(&one->state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void tell(worker *one, int state) {
    WRITE(one->state, state);
    pthread_mutex_lock(&one->lock); /* or it might go to sleep right now */
    pthread_cond_broadcast(&one->changed);
    pthread_mutex_unlock(&one->lock);
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void await(worker *one, int state) {
    for (const long long until = now() + AWAKE; now() < until;)
        for (int k = 0; k < 50; ++k) {
            if (READ(one->state) == state) return;
            PAUSE();
        }
    pthread_mutex_lock(&one->lock);
    while (READ(one->state) != state) pthread_cond_wait(&one->changed, &one->lock);
    pthread_mutex_unlock(&one->lock);
}

/* Takes what is left part by part: half of what is even for all, but no less than the least. */
static void share(task *t, int number) {
    ptrdiff_t found = 0, from = READ(t->next);
    while (from < t->n) {
        const ptrdiff_t even = (t->n - from) / (2 * t->threads * t->least) * t->least;
        const ptrdiff_t part = even > t->least ? even : t->least, to = from + part < t->n ? from + part : t->n;
        if (!__atomic_compare_exchange_n(&t->next, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
        found += t->run(t->job, from, to, t->w + t->n_work * number);
        from = READ(t->next);
    }
    ADD(t->found, found);
}

static void *serve(void *argument) {
    worker *const me = argument;
    for (;;) {
        await(me, CALLED);
        if (!change(me, CALLED, BUSY)) continue;
        share(me->what, me->number);
        tell(me, DONE);
    }
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

/* Runs n states in parts of a multiple of the least, with a workspace of n_work doubles for each thread in w; returns
   the sum of what the parts return. */
ptrdiff_t run_parts(routine *run, const void *job, ptrdiff_t n, ptrdiff_t least, double *w, ptrdiff_t n_work,
                    int threads) {
    task t = {run, job, n, least, threads, 0, 0, n_work, w};
    worker *helpers[MOST];
    int n_helpers = 0, place = 0;
    while (n_helpers < threads - 1 && n_helpers < MOST && (n_helpers + 1) * least < n) {
        worker *const one = take(&place);
        if (!one) break;
        one->number = n_helpers + 1;
        one->what = &t;
        helpers[n_helpers++] = one;
        tell(one, CALLED);
    }
    share(&t, 0);
    for (int k = 0; k < n_helpers; ++k) {
        if (!change(helpers[k], CALLED, TAKEN)) await(helpers[k], DONE);
        WRITE(helpers[k]->state, FREE);
    }
    return t.found;
}

/* Of a process that was just forked: none of the threads is in it. */
void forget_threads(void) {
    n_workers = 0;
    pthread_mutex_init(&hiring, 0);
}
"""


@cache
def pool(ffi: Any, compiler: Compiler) -> Any:
    """Return the library of the threads, of which a process has one, for good: they wait in its code.

    Args:
        ffi: the cffi interface that declares what it holds.
        compiler: the compiler.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """
    found = load_library(ffi, SOURCE, compiler, ffi.RTLD_NOW | ffi.RTLD_NODELETE)
    os.register_at_fork(after_in_child=found.forget_threads)
    return found
