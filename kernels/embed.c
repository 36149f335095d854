/* embed OUT.c A.cl B.cl ...: writes the kernel texts as C byte arrays, with the
 * table that src/gpu/kernel_source.h declares. Runs at build time only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *path)
{
    fprintf(stderr, "embed: %s '%s': %s\n", what, path, strerror(errno));
    exit(1);
}

static void write_array(FILE *out, int index, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        die("cannot open", path);
    fprintf(out, "static const char text_%d[] = {", index);
    int c, n = 0;
    while ((c = getc(in)) != EOF)
        fprintf(out, "%s%d,", n++ % 16 == 0 ? "\n    " : " ", c);
    if (ferror(in))
        die("cannot read", path);
    fclose(in);
    fprintf(out, "\n    0};\n\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: embed OUT.c KERNEL.cl...\n");
        return 64;
    }
    FILE *out = fopen(argv[1], "w");
    if (out == NULL)
        die("cannot write", argv[1]);
    fprintf(out, "/* Made by embed from kernels/; do not edit. */\n"
                 "#include \"gpu/kernel_source.h\"\n\n");
    for (int i = 2; i < argc; i++)
        write_array(out, i - 2, argv[i]);
    fprintf(out, "const tsr_kernel_source tsr_kernel_sources[] = {\n");
    for (int i = 2; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        fprintf(out, "    {\"%s\", text_%d, sizeof text_%d - 1},\n",
                slash != NULL ? slash + 1 : argv[i], i - 2, i - 2);
    }
    fprintf(out, "    {0, 0, 0}};\n");
    if (ferror(out) | fclose(out)) {
        remove(argv[1]);
        die("cannot write", argv[1]);
    }
    return 0;
}
