/*
 * Wator: fish that attract each other swim in a square ocean, whose edges they are thrown back
 * from. Each rank moves its fish. In each step it gets the places of all fish of one rank after
 * another, those of the next while it works on those of this one.
 *
 *   cci run -n 4 ./wator [fish of a rank] [steps]
 */

#include <string.h>
#include <split-c/split-c.h>
#include "check.h"

typedef struct { double x, y, mass; } place_t;
typedef struct { double x, y; } vector_t;

#define STEP 0.01

static void place_first(place_t *fish, vector_t *speed, int number)
{
    unsigned long state = number + 1;
    fish->x = random_next(&state) % 1000 / 1000.0;
    fish->y = random_next(&state) % 1000 / 1000.0;
    fish->mass = 1 + random_next(&state) % 8;
    speed->x = random_next(&state) % 100 / 1000.0;
    speed->y = random_next(&state) % 100 / 1000.0;
}

/* Adds the pull of many fish on one: softened where they meet, so that no force is without bound. */
static void attract(vector_t *force, place_t *fish, place_t *others, int count)
{
    int i;
    for (i = 0; i < count; i++) {
        double x = others[i].x - fish->x, y = others[i].y - fish->y, pull = others[i].mass / (0.05 + x * x + y * y);
        force->x += pull * x;
        force->y += pull * y;
    }
}

static void along(double *at, double *speed, double force)
{
    *speed += STEP * force;
    *at += STEP * *speed;
    if (*at < 0 || *at > 1) {
        *at = *at < 0 ? -*at : 2 - *at;
        *speed = -*speed;
    }
}

static void move(place_t *fish, vector_t *speed, vector_t *force)
{
    along(&fish->x, &speed->x, force->x * 0.001);
    along(&fish->y, &speed->y, force->y * 0.001);
}

static void swim(place_t *spread fish, vector_t *speeds, int n, int steps)
{
    place_t *own = tolocal(fish + MYPROC), *buffer[2];
    vector_t *forces = malloc(n * sizeof *forces);
    int step, rank, i;
    for (i = 0; i < 2; i++)
        buffer[i] = malloc(n * sizeof *own);
    for (step = 0; step < steps; step++) {
        memset(forces, 0, n * sizeof *forces);
        bulk_get(buffer[0], (place_t *global)fish, n * sizeof *own);
        for (rank = 0; rank < PROCS; rank++) {
            sync();
            if (rank + 1 < PROCS)
                bulk_get(buffer[(rank + 1) % 2], (place_t *global)(fish + (rank + 1)), n * sizeof *own);
            for (i = 0; i < n; i++)
                attract(&forces[i], &own[i], buffer[rank % 2], n);
        }
        /* No fish moves before all have seen it. */
        barrier();
        for (i = 0; i < n; i++)
            move(&own[i], &speeds[i], &forces[i]);
        barrier();
    }
    free(forces);
    free(buffer[0]);
    free(buffer[1]);
}

/* Compares this rank's fish with those of one process, which has all. */
static void check(place_t *own, int n, int steps)
{
    int all = n * PROCS, step, i;
    place_t *fish = malloc(all * sizeof *fish);
    vector_t *speeds = malloc(all * sizeof *speeds), *forces = malloc(all * sizeof *forces);
    for (i = 0; i < all; i++)
        place_first(&fish[i], &speeds[i], i);
    for (step = 0; step < steps; step++) {
        memset(forces, 0, all * sizeof *forces);
        for (i = 0; i < all; i++)
            attract(&forces[i], &fish[i], fish, all);
        for (i = 0; i < all; i++)
            move(&fish[i], &speeds[i], &forces[i]);
    }
    for (i = 0; i < n; i++)
        if (!agree(own[i].x, fish[MYPROC * n + i].x) || !agree(own[i].y, fish[MYPROC * n + i].y))
            wrong("fish", MYPROC * n + i, own[i].x, fish[MYPROC * n + i].x);
    free(fish);
    free(speeds);
    free(forces);
}

int splitc_main(int argc, char **argv)
{
    int n = argument(argc, argv, 1, 60), steps = argument(argc, argv, 2, 20), i;
    place_t *spread fish = all_spread_malloc(n * PROCS, sizeof(place_t)), *own = tolocal(fish + MYPROC);
    vector_t *speeds = malloc(n * sizeof *speeds);
    double mass = 0, x = 0;
    for (i = 0; i < n; i++)
        place_first(&own[i], &speeds[i], MYPROC * n + i);
    barrier();
    swim(fish, speeds, n, steps);
    check(own, n, steps);
    for (i = 0; i < n; i++) {
        mass += own[i].mass;
        x += own[i].mass * own[i].x;
    }
    mass = all_reduce_to_all_dadd(mass);
    x = all_reduce_to_all_dadd(x);
    on_one {
        printf("centre at %.9f\n", x / mass);
        printf("wator: %d fish are right\n", n * PROCS);
    }
    free(speeds);
    return 0;
}
