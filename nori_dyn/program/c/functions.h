/* Statements without a branch need few passes of GCC, and come out the same without the others, which take half of its
   time. What is called at few states need not be quick, but quick to compile. Code that stands alone is compiled as its
   user says. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(STAND_ALONE)
#define STRAIGHT __attribute__((optimize("O1", "expensive-optimizations", "no-tree-dse", "no-dse")))
#define RARELY __attribute__((cold, optimize("O1")))
#else
#define STRAIGHT
#define RARELY
#endif

/* What other files see; of code that stands alone, nothing. */
#ifdef STAND_ALONE
#define SEEN static inline
#else
#define SEEN
#endif

#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
