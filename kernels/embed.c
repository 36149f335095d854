/* embed OUT.c FILE...: writes text files as C arrays, at build time only. The
 * arrays of kernels are listed in the table tsr_kernel_sources
 * (src/gpu/opencl.h). With -t before OUT.c each file becomes a separate array:
 * NAME.js becomes tsr_NAME_js. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *path)
{
    fprintf(stderr, "embed: %s '%s': %s\n", what, path, strerror(errno));
    exit(1);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void write_bytes(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        die("cannot open", path);
    int c, n = 0;
    while ((c = getc(in)) != EOF)
        fprintf(out, "%s%d,", n++ % 16 == 0 ? "\n    " : " ", c);
    if (ferror(in))
        die("cannot read", path);
    fclose(in);
    fprintf(out, "\n    0};\n\n");
}

static void write_table(FILE *out, int n, char **path)
{
    fprintf(out, "#include \"gpu/opencl.h\"\n\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "static const char text_%d[] = {", i);
        write_bytes(out, path[i]);
    }
    fprintf(out, "const tsr_kernel_source tsr_kernel_sources[] = {\n");
    for (int i = 0; i < n; i++)
        fprintf(out, "    {\"%s\", text_%d, sizeof text_%d - 1},\n",
                file_name(path[i]), i, i);
    fprintf(out, "    {0, 0, 0}};\n");
}

static void write_texts(FILE *out, int n, char **path)
{
    for (int i = 0; i < n; i++) {
        const char *name = file_name(path[i]), *dot = strrchr(name, '.');
        fprintf(out, "const char tsr_%.*s_%s[] = {", (int)(dot - name), name,
                dot + 1);
        write_bytes(out, path[i]);
    }
}

int main(int argc, char **argv)
{
    const int is_texts = argc > 1 && strcmp(argv[1], "-t") == 0;
    argv += is_texts, argc -= is_texts;
    if (argc < 2) {
        fprintf(stderr, "usage: embed [-t] OUT.c FILE...\n");
        return 64;
    }
    FILE *out = fopen(argv[1], "w");
    if (out == NULL)
        die("cannot write", argv[1]);
    fprintf(out, "/* Made by embed; do not edit. */\n");
    (is_texts ? write_texts : write_table)(out, argc - 2, argv + 2);
    if (ferror(out) | fclose(out)) {
        remove(argv[1]);
        die("cannot write", argv[1]);
    }
    return 0;
}
