/* Calls from Python with nothing between: a built-in function of CPython is made of `tick`. What that needs of CPython's
   stable interface comes as addresses: no header of Python is needed, and nothing is linked. */

#include <stdint.h>

/* What a built-in function is of: run(at), what to return where that is 0, and what to call where it is not; without
   these, what it returns is returned. */
typedef struct {
    int (*run)(const void *);
    const void *at;
    void *good, *otherwise;
} call;

static void *(*pointer_of)(void *, const char *);
static void (*keep)(void *);
static void *(*call_object)(void *, void *);
static void *(*number)(long);

/* Takes CPython's PyCapsule_GetPointer, Py_IncRef, PyObject_CallObject and PyLong_FromLong. */
void begin(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {
    pointer_of = (void *(*)(void *, const char *))a;
    keep = (void (*)(void *))b;
    call_object = (void *(*)(void *, void *))c;
    number = (void *(*)(long))d;
}

void *tick(void *self, void *nothing) {
    const call *const it = pointer_of(self, 0);
    const int wrong = it->run(it->at);
    (void)nothing;
    if (!it->good) return number(wrong);
    if (wrong) return call_object(it->otherwise, 0);
    keep(it->good);
    return it->good;
}
