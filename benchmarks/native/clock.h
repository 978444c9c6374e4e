/* The monotonic clock of the bench's C programs, and its distance to the wall clock that kernel stamps are on. */
#pragma once
#include <stdint.h>
#include <time.h>

typedef int64_t ns_t;
static ns_t wall_offset, wall_sampled; /* wall minus monotonic */

static ns_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sample_wall(void) { /* the narrowest of ten readings; again once a second */
    ns_t best = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        struct timespec w;
        ns_t a = now_ns();
        clock_gettime(CLOCK_REALTIME, &w);
        ns_t b = now_ns();
        if (b - a < best) { best = b - a; wall_offset = w.tv_sec * 1000000000LL + w.tv_nsec - (a + b) / 2; }
    }
    wall_sampled = now_ns();
}
