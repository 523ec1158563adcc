#include <stdio.h>
#define LOUD 3

static int ring_bell(int times)
{
    return printf("%d\n", times * LOUD);
}

int main(void) { return ring_bell(2) < 0; }
