/* NumPy's arrays as they lie in memory: `PyArrayObject_fields` of its ndarraytypes.h, which every extension module has
   compiled in. Python says the rest before the first call. */

#include <stddef.h>

typedef struct {
    char *data;
    int n_axes;
    ptrdiff_t *sizes, *strides;
    void *base;
    const void *type;
    int flags;
} array;

enum { ALIGNED = 0x100, WRITEABLE = 0x400 };

/* The class of arrays without more; bytes of an object before what it holds, the last of which say its class, and of a
   tuple before its items. */
const void *array_class;
ptrdiff_t head, items;

/* From where to where the numbers of an array lie. */
static void span(const array *a, ptrdiff_t size, const char **from, const char **to) {
    *from = *to = a->data;
    for (int k = 0; k < a->n_axes; ++k) {
        const ptrdiff_t length = (a->sizes[k] - 1) * a->strides[k];
        *(length < 0 ? from : to) += length;
    }
    *to += size;
}

static int share(const array *a, const array *b, ptrdiff_t size) {
    const char *from, *to, *start, *end;
    span(a, size, &from, &to);
    span(b, size, &start, &end);
    return from < end && start < to;
}

/* Says where the arrays of N states lie, which a tuple holds; returns 0 where one is not as it must be: of its type,
   with the numbers of a state that its block says, the first n_each with a row for each state, outputs writeable and
   apart from all that is read. Where n_each is 0, Python has seen to that. */
static int lay(const char *tuple, const call *what, ptrdiff_t N) {
    const batch *const at = &what->at;
    const ptrdiff_t n_arrays = what->n_arrays, n_each = what->n_each, size = what->size;
    const char *const *const objects = (const char *const *)(tuple + items);
    for (ptrdiff_t k = 0; k < n_arrays; ++k) {
        const array *const a = (const array *)(objects[k] + head);
        const int is_output = k >= n_arrays - at->n_out;
        block *const b = (block *)at->blocks + k;
        if (n_each) {
            if (((const void *const *)a)[-1] != array_class || a->type != what->type) return 0;
            if (!(a->flags & ALIGNED) || (is_output && !(a->flags & WRITEABLE))) return 0;
            if (a->n_axes != 2 && (a->n_axes != 1 || k < n_each || is_output)) return 0;
            if (a->sizes[a->n_axes - 1] != b->n || (a->n_axes == 2 && a->sizes[0] != N)) return 0;
            if (is_output && ((N > 1 && !a->strides[0]) || (b->n > 1 && !a->strides[1]))) return 0;
            for (ptrdiff_t i = 0; is_output && i < k; ++i) /* an array without numbers shares none */
                if (at->blocks[i].n && b->n && share(a, (const array *)(objects[i] + head), size)) return 0;
        }
        b->across = a->strides[a->n_axes - 1] / size;
        b->step = a->n_axes == 2 ? a->strides[0] / size : 0;
        if (a->strides[a->n_axes - 1] % size || (a->n_axes == 2 && a->strides[0] % size)) return 0;
        ((void **)at->arrays)[k] = a->data;
    }
    return 1;
}
