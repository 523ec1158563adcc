/* A store of parts. */
#include <stdio.h>
#include "parts.h"

#define LIMIT 100
#define SQUARE(x) ((x) * (x))

typedef unsigned int count_t;

/* One part on a shelf. */
struct part {
    const char *name;
    count_t count;
};

typedef struct {
    struct part *parts[LIMIT];
    int used;
} store_t;

enum state { EMPTY, FULL = 2 };

union value {
    int number;
    char *text;
};

static int opened = 0;
extern int closed;

int store_add(store_t *store, struct part *part);

/* Adds one part. */
int store_add(store_t *store, struct part *part)
{
    if (store->used >= LIMIT)
        return -1;
    store->parts[store->used++] = part;
    return 0;
}

static char *
part_name(const struct part *part)
{
    return strdup(part->name);
}

int main(int argc, char **argv)
{
    store_t store = {0};
    struct part part = {"bolt", SQUARE(2)};
    opened++;
    store_add(&store, &part);
    printf("%s\n", part_name(&part));
    return 0;
}
