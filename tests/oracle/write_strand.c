/* A single strand as a file, for scripts: write_strand NUCLEOTIDES rna|dna. */
#include "tests/strand_sample.h"

int main(int argc, char **argv)
{
    const double origin[3] = {0.0, 0.0, 0.0};
    const int n = argc == 3 ? atoi(argv[1]) : 0;
    if (n < 1)
        return 64;
    strand_write(stdout, 'S', n, strcmp(argv[2], "dna") == 0, origin);
    return 0;
}
