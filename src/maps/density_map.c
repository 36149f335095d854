/* Density maps in files: MRC2014 and CCP4, in all modes and byte orders, and
 * OpenDX. */
#include "maps/density_map.h"

#include "files/file.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    CHUNK = 1 << 16, /* voxels read at a time */
    HEADER = 1024    /* bytes */
};

static const double gib = 1024.0 * 1024.0 * 1024.0;

tsr_status tsr_map_new(const tsr_map_grid *grid, tsr_pool *pool, tsr_map **out,
                       tsr_err *err)
{
    tsr_map *map = *out = tsr_pool_new(pool, 1, sizeof *map);
    float *value = tsr_pool_new(pool, tsr_map_n_voxel(grid), sizeof *value);
    if (map == NULL || value == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a map of %d x %d x %d voxels",
                        grid->n[0], grid->n[1], grid->n[2]);
    *map = (tsr_map){.grid = *grid, .value = value};
    return TSR_OK;
}

/* 1: number of voxels, steps and origin agree within rounding. */
static int is_same_grid(const tsr_map_grid *a, const tsr_map_grid *b)
{
    for (int c = 0; c < 3; c++)
        if (a->n[c] != b->n[c] ||
            fabs(a->step[c] - b->step[c]) > 1e-3 * a->step[c] ||
            fabs(a->origin[c] - b->origin[c]) > 0.01 * a->step[c])
            return 0;
    return 1;
}

tsr_map_box tsr_map_box_about(const tsr_map_grid *g, const double x[3],
                              double reach)
{
    tsr_map_box b = {.grid = g, .x = {x[0], x[1], x[2]}};
    for (int c = 0; c < 3; c++) {
        const double at = (x[c] - g->origin[c]) / g->step[c];
        const double far = reach / g->step[c];
        const double low = fmax(0.0, ceil(at - far));
        const double high = fmin(g->n[c] - 1.0, floor(at + far));
        if (!(low <= high))
            return (tsr_map_box){.last = {-1, -1, -1}};
        b.first[c] = b.at[c] = (int)low;
        b.last[c] = (int)high;
    }
    b.at[0] = b.last[0]; /* the first call of tsr_map_box_next starts the first
                            row */
    b.at[1]--;
    return b;
}

int tsr_map_box_row(tsr_map_box *b)
{
    const tsr_map_grid *g = b->grid;
    b->at[0] = b->first[0];
    if (++b->at[1] > b->last[1]) {
        b->at[1] = b->first[1];
        if (++b->at[2] > b->last[2])
            return 0;
    }
    for (int c = 1; c < 3; c++) {
        const double d = g->origin[c] + g->step[c] * b->at[c] - b->x[c];
        b->across[c - 1] = d * d;
    }
    b->row = ((size_t)b->at[2] * (size_t)g->n[1] + (size_t)b->at[1]) *
             (size_t)g->n[0];
    return 1;
}

tsr_status tsr_map_check_grid(const char *what, const tsr_map *map,
                              const tsr_map *other, tsr_err *err)
{
    const int *a = map->grid.n, *b = other->grid.n;
    if (is_same_grid(&map->grid, &other->grid))
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "%s '%s' (%d x %d x %d voxels) is not on the grid of '%s' "
                    "(%d x %d x %d): voxels, steps and origin must be the same",
                    what, map->path, a[0], a[1], a[2], other->path, b[0], b[1],
                    b[2]);
}

/* ---- decoding of a voxel ---- */

static const struct {
    int mode, bytes;
} modes[] = {{0, 1}, {1, 2}, {2, 4}, {6, 2}, {12, 2}};

static int mode_bytes(int mode)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (modes[i].mode == mode)
            return modes[i].bytes;
    return 0;
}

/* IEEE 754 half precision: 1 sign, 5 exponent, 10 fraction bits. */
static float half_to_float(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value;
    if (exponent == 31)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(1024 + fraction, exponent - 25);
    return (float)(bits & 0x8000 ? -value : value);
}

/* Copies a number of n bytes into this machine's byte order. */
static void copy_bytes(const unsigned char *at, int n, int is_swapped, void *to)
{
    unsigned char *out = to;
    for (int i = 0; i < n; i++)
        out[i] = at[is_swapped ? n - 1 - i : i];
}

static float decode_voxel(const unsigned char *at, int mode, int is_swapped)
{
    uint16_t two = 0;
    float four = 0.0f;
    if (mode == 2)
        copy_bytes(at, 4, is_swapped, &four);
    else if (mode != 0)
        copy_bytes(at, 2, is_swapped, &two);
    return mode == 0    ? (float)(signed char)*at
           : mode == 1  ? (float)(int16_t)two
           : mode == 6  ? (float)two
           : mode == 12 ? half_to_float(two)
                        : four;
}

/* ---- the header ---- */

/* Numbers of the words in the header, counted from 1. */
enum {
    NX = 1,
    MODE = 4,
    NXSTART = 5,
    MX = 8,
    CELLA = 11,
    CELLB = 14,
    MAPC = 17,
    DMIN = 20,
    ISPG = 23,
    NSYMBT = 24,
    LSKFLG = 25,
    EXTTYP = 27,
    NVERSION = 28,
    ORIGIN = 50,
    MAP = 53,
    MACHST = 54,
    RMS = 55,
    NLABL = 56,
    LABEL = 57
};

typedef struct {
    const char *path;
    gzFile stream;
    unsigned char raw[HEADER];
    int is_swapped;    /* 1: the file has the other byte order */
    int axis[3];       /* axis (0 to 2) of columns, rows and sections */
    double start[3];   /* NXSTART to NZSTART in Angstrom, by x, y, z */
    double origin[3];  /* ORIGIN, by x, y, z */
    tsr_map_grid grid; /* without its origin */
} reader;

static int32_t word(const reader *r, int w)
{
    int32_t value;
    copy_bytes(r->raw + 4 * (w - 1), 4, r->is_swapped, &value);
    return value;
}

static double real(const reader *r, int w)
{
    float value;
    copy_bytes(r->raw + 4 * (w - 1), 4, r->is_swapped, &value);
    return (double)value;
}

/* Numbers of voxels and axes are plausible only in the right byte order. */
static int is_plausible(const reader *r)
{
    for (int i = 0; i < 3; i++) {
        const int axis = word(r, MAPC + i), n = word(r, NX + i);
        if (axis < 0 || axis > 3 || n < 1 || n > 0xffff)
            return 0;
    }
    return word(r, MODE) >= 0 && word(r, MODE) < 256;
}

static int is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one;
}

/* Finds the byte order by the plausibility of the header, since the machine
 * stamp is often wrong. */
static tsr_status find_order(reader *r, tsr_log *log, tsr_err *err)
{
    r->is_swapped = 0;
    r->is_swapped = !is_plausible(r);
    if (!is_plausible(r))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a density map in MRC, CCP4 or OpenDX "
                        "format: NX, NY, NZ, MODE and MAPC (words 1 to 4, 17) "
                        "are invalid in either byte order",
                        r->path);
    const int is_little = is_little_endian() != r->is_swapped;
    if (r->raw[4 * (MACHST - 1)] != (is_little ? 0x44 : 0x11))
        tsr_info(log,
                 "'%s': MACHST (word 54) does not give the byte order; the "
                 "header is valid as %s-endian",
                 r->path, is_little ? "little" : "big");
    return TSR_OK;
}

/* Whether the map has CCP4's skew matrix. MRC2014 uses these words otherwise,
 * and programs leave other data in them, so the matrix must also be a rotation
 * that is not the identity. */
static int is_skewed(const reader *r)
{
    double m[9], most = 0.0;
    for (int i = 0; i < 9; i++) {
        m[i] = real(r, LSKFLG + 1 + i);
        most = fmax(most, fabs(m[i] - (i % 4 == 0)));
    }
    const double det = m[0] * (m[4] * m[8] - m[5] * m[7]) +
                       m[1] * (m[5] * m[6] - m[3] * m[8]) +
                       m[2] * (m[3] * m[7] - m[4] * m[6]);
    return word(r, LSKFLG) == 1 && fabs(det - 1.0) < 0.01 && most > 1e-6;
}

/* If no axis is set, columns, rows and sections are x, y and z. */
static tsr_status find_axes(reader *r, tsr_err *err)
{
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        r->axis[i] = word(r, MAPC + i) - 1;
        seen |= r->axis[i] >= 0 ? 1 << r->axis[i] : 0;
    }
    for (int i = 0; i < 3 && seen == 0; i++)
        r->axis[i] = i;
    if (seen != 0 && seen != 7)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': MAPC/MAPR/MAPS (words 17 to 19): axes %d, %d, "
                        "%d are not 1, 2 and 3 in some order",
                        r->path, word(r, MAPC), word(r, MAPC + 1),
                        word(r, MAPC + 2));
    return TSR_OK;
}

static tsr_status check_header(const reader *r, tsr_err *err)
{
    static const char *const angle[] = {"alpha", "beta", "gamma"};
    const int has_angles = real(r, CELLB + 2) != 0.0;
    for (int i = 0; i < 3; i++) {
        const double degrees = real(r, CELLB + i), length = real(r, CELLA + i);
        if (!(fabs(degrees - 90.0) < 0.01) && (has_angles || degrees != 0.0))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': CELLB (words 14 to 16): %s is %g degrees; "
                            "only rectangular cells can be read, resample the "
                            "map on one",
                            r->path, angle[i], degrees);
        if (!(length > 0.0 && length < 1e6))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': CELLA (words 11 to 13): an edge of the cell "
                            "is %g Angstrom",
                            r->path, length);
        if (word(r, MX + i) < 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': MX, MY, MZ (words 8 to 10): %d intervals",
                            r->path, word(r, MX + i));
    }
    if (word(r, NSYMBT) < 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': NSYMBT (word 24): %d bytes of extended header",
                        r->path, word(r, NSYMBT));
    if (is_skewed(r))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': LSKFLG (word 25): the map is skewed against its "
                        "atoms, which cannot be read",
                        r->path);
    if (word(r, ISPG) > 400 && word(r, ISPG) <= 630)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': ISPG (word 23) is %d: the file holds a stack of "
                        "volumes; give one volume",
                        r->path, word(r, ISPG));
    if (mode_bytes(word(r, MODE)) == 0)
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s': MODE (word 4) is %d; supported modes are 0, 1, 2, 6 and 12",
            r->path, word(r, MODE));
    return TSR_OK;
}

static tsr_status read_header(reader *r, tsr_log *log, tsr_err *err)
{
    TSR_TRY(find_order(r, log, err));
    TSR_TRY(find_axes(r, err));
    TSR_TRY(check_header(r, err));
    for (int i = 0; i < 3; i++)
        r->grid.n[r->axis[i]] = word(r, NX + i);
    for (int c = 0; c < 3; c++) {
        const int m = word(r, MX + c);
        r->grid.step[c] = real(r, CELLA + c) / (m > 0 ? m : r->grid.n[c]);
        r->origin[c] = real(r, ORIGIN + c);
    }
    for (int i = 0; i < 3; i++)
        r->start[r->axis[i]] = word(r, NXSTART + i) * r->grid.step[r->axis[i]];
    return TSR_OK;
}

static void put_word(unsigned char *raw, int w, int32_t value)
{
    memcpy(raw + 4 * (w - 1), &value, 4);
}

static void put_real(unsigned char *raw, int w, double value)
{
    const float real = (float)value;
    memcpy(raw + 4 * (w - 1), &real, 4);
}

/* Writes the header of a map into raw. stats: minimum, maximum, mean, rms
 * deviation. */
static void make_header(const tsr_map_grid *grid, const double stats[4],
                        const char *title, unsigned char raw[HEADER])
{
    char label[81];
    memset(raw, 0, HEADER);
    for (int c = 0; c < 3; c++) {
        put_word(raw, NX + c, grid->n[c]);
        put_word(raw, MX + c, grid->n[c]);
        put_real(raw, CELLA + c, grid->n[c] * grid->step[c]);
        put_real(raw, CELLB + c, 90.0);
        put_word(raw, MAPC + c, c + 1);
        put_real(raw, DMIN + c, stats[c]);
        put_real(raw, ORIGIN + c, grid->origin[c]);
    }
    put_word(raw, MODE, 2);
    put_word(raw, ISPG, 1);
    memcpy(raw + 4 * (EXTTYP - 1), "CCP4", 4);
    put_word(raw, NVERSION, 20140);
    memcpy(raw + 4 * (MAP - 1), "MAP ", 4);
    put_word(raw, MACHST, is_little_endian() ? 0x4144 : 0x11110000);
    put_real(raw, RMS, stats[3]);
    put_word(raw, NLABL, 1);
    memset(raw + 4 * (LABEL - 1), ' ', 800);
    const int n = snprintf(label, sizeof label, TSR_MAP_MARK "%s", title);
    memcpy(raw + 4 * (LABEL - 1), label, (size_t)(n < 80 ? n : 80));
}

/* ---- MRC ---- */

static tsr_status read_bytes(const reader *r, void *to, size_t size,
                             const char *what, tsr_err *err)
{
    int got = gzread(r->stream, to, (unsigned)size);
    if (got == (int)size)
        return TSR_OK;
    int code;
    const char *why = gzerror(r->stream, &code);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return tsr_fail(err, TSR_E_DATA, "cannot read '%s': %s", r->path,
                        code == Z_ERRNO ? strerror(errno) : why);
    return tsr_fail(
        err, TSR_E_DATA,
        "'%s' ends within its %s: the file is incomplete; download it again",
        r->path, what);
}

static tsr_status skip_bytes(const reader *r, int size, tsr_err *err)
{
    char buffer[4096];
    for (int left = size, n; left > 0; left -= n) {
        n = left < (int)sizeof buffer ? left : (int)sizeof buffer;
        TSR_TRY(
            read_bytes(r, buffer, (size_t)n, "extended header (NSYMBT)", err));
    }
    return TSR_OK;
}

/* Compares the file's size with the number of voxels. Warns of the memory that
 * a large map needs: for comparisons, the map, a grid of equal size for the
 * model's density, and two grids for Fourier transforms. */
static tsr_status check_memory(const reader *r, tsr_log *log, tsr_err *err)
{
    const tsr_map_grid *grid = &r->grid;
    const char *path = r->path;
    const double n_voxel = (double)grid->n[0] * grid->n[1] * grid->n[2];
    const double bytes = 4.0 * n_voxel;
    const double here =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double packed =
        gzdirect(r->stream) ? 1.0 : 1032.0; /* largest compression
                                               ratio of zlib */
    struct stat file;
    if (stat(path, &file) == 0 && S_ISREG(file.st_mode) &&
        (double)file.st_size * packed < n_voxel * mode_bytes(word(r, MODE)))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' ends within its voxels, after %lld bytes: the "
                        "file is incomplete; download it again",
                        path, (long long)file.st_size);
    if (bytes > 1.0 * gib)
        tsr_warn(log,
                 "'%s' has %d x %d x %d voxels: %.1f GiB, up to %.1f GiB in "
                 "comparisons with models, and up to %.0f GiB as data of a run "
                 "unless a mask reduces it; this machine has %.1f GiB",
                 path, grid->n[0], grid->n[1], grid->n[2], bytes / gib,
                 4.0 * bytes / gib, 35.0 * bytes / gib, here / gib);
    if (bytes > 0.9 * here)
        return tsr_fail(err, TSR_E_NOMEM,
                        "'%s' has %d x %d x %d voxels, %.1f GiB, and this "
                        "machine has %.1f GiB of memory; crop or bin the map",
                        path, grid->n[0], grid->n[1], grid->n[2], bytes / gib,
                        here / gib);
    return TSR_OK;
}

static int is_zero(const double v[3])
{
    return v[0] == 0.0 && v[1] == 0.0 && v[2] == 0.0;
}

/* Sets the position of the first voxel by one of the two conventions, and
 * reports a contradiction between them. */
static void set_origin(reader *r, tsr_map_origin choice, tsr_log *log)
{
    const double *start = r->start, *origin = r->origin;
    const int takes_start = choice == TSR_MAP_ORIGIN_NSTART ||
                            (choice == TSR_MAP_ORIGIN_AUTO && is_zero(origin));
    double apart = 0.0;
    for (int c = 0; c < 3; c++) {
        r->grid.origin[c] = takes_start ? start[c] : origin[c];
        apart = fmax(apart, fabs(start[c] - origin[c]) / r->grid.step[c]);
    }
    if (choice == TSR_MAP_ORIGIN_AUTO && apart > 0.5 && !is_zero(start) &&
        !is_zero(origin))
        tsr_info(log,
                 "'%s': ORIGIN is (%.2f, %.2f, %.2f) Angstrom but NXSTART to "
                 "NZSTART give (%.2f, %.2f, %.2f); ORIGIN is used, --origin "
                 "nstart uses the other",
                 r->path, origin[0], origin[1], origin[2], start[0], start[1],
                 start[2]);
}

/* Reads voxels in file order and stores them in the order x, y, z. */
static tsr_status read_voxels(const reader *r, tsr_map *map, tsr_err *err)
{
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    const int mode = word(r, MODE), bytes = mode_bytes(mode);
    const size_t step[3] = {1, (size_t)map->grid.n[0],
                            (size_t)map->grid.n[0] * (size_t)map->grid.n[1]};
    unsigned char *buffer = malloc((size_t)CHUNK * 4);
    TSR_TRY(tsr_allocated(buffer, err));
    tsr_status status = TSR_OK;
    size_t at[3] = {0, 0, 0};
    for (size_t done = 0; done < n_voxel && status == TSR_OK; done += CHUNK) {
        size_t n = n_voxel - done < CHUNK ? n_voxel - done : CHUNK;
        status = read_bytes(r, buffer, n * (size_t)bytes, "voxels", err);
        for (size_t k = 0; k < n && status == TSR_OK; k++) {
            float v =
                decode_voxel(buffer + k * (size_t)bytes, mode, r->is_swapped);
            size_t to = 0;
            for (int i = 0; i < 3; i++)
                to += at[i] * step[r->axis[i]];
            map->value[to] = isfinite(v) ? v : NAN;
            for (int i = 0;
                 i < 3 && ++at[i] == (size_t)map->grid.n[r->axis[i]] && i < 2;
                 i++)
                at[i] = 0;
        }
    }
    free(buffer);
    return status;
}

static tsr_status read_mrc(reader *r, tsr_map_origin origin, tsr_log *log,
                           tsr_pool *pool, tsr_map **out, tsr_err *err)
{
    TSR_TRY(read_header(r, log, err));
    set_origin(r, origin, log);
    TSR_TRY(check_memory(r, log, err));
    TSR_TRY(skip_bytes(r, word(r, NSYMBT), err));
    TSR_TRY(tsr_map_new(&r->grid, pool, out, err));
    return read_voxels(r, *out, err);
}

/* ---- OpenDX ----
 *
 * The text format of VMD, APBS and MDFF:
 *
 *     object 1 class gridpositions counts NX NY NZ
 *     origin X Y Z
 *     delta HX 0 0
 *     delta 0 HY 0
 *     delta 0 0 HZ
 *     object 2 class gridconnections counts NX NY NZ
 *     object 3 class array type double rank 0 items N data follows
 *
 * and then N values, z fastest. */

/* Reads one line of the header. Returns the text of an error, or NULL. */
static const char *read_dx_line(const char *line, tsr_map_grid *g, int *n_delta,
                                double *n_item)
{
    const char *at = strstr(line, "gridpositions counts");
    double d[3];
    if (at != NULL) {
        if (sscanf(at + 20, "%lf %lf %lf", &d[0], &d[1], &d[2]) != 3)
            return "gridpositions without three counts";
        for (int c = 0; c < 3; c++) {
            if (!(d[c] >= 1.0 && d[c] <= 32767.0))
                return "counts of gridpositions out of range";
            g->n[c] = (int)d[c];
        }
    } else if (sscanf(line, " origin %lf %lf %lf", &g->origin[0], &g->origin[1],
                      &g->origin[2]) == 3) {
        return NULL;
    } else if (strncmp(line + strspn(line, " \t"), "origin", 6) == 0) {
        return "origin without three numbers";
    } else if (strncmp(line + strspn(line, " \t"), "delta", 5) == 0) {
        /* the k-th line may have a nonzero number only along axis k */
        const int k = (*n_delta)++;
        if (k > 2 ||
            sscanf(line, " delta %lf %lf %lf", &d[0], &d[1], &d[2]) != 3)
            return "three lines 'delta' with three numbers are needed";
        for (int c = 0; c < 3; c++)
            if (c != k && fabs(d[c]) > 1e-6 * fabs(d[k]))
                return "delta: the axes are not those of x, y, z; resample the "
                       "map on a rectangular grid";
        if (!(d[k] > 0.0))
            return "delta: a step that is not above 0";
        g->step[k] = d[k];
    } else if (strstr(line, "class array") != NULL) {
        at = strstr(line, "items");
        if (at == NULL || sscanf(at + 5, "%lf", n_item) != 1)
            return "class array without items";
        if (strstr(line, "binary") != NULL || strstr(line, "lsb") != NULL ||
            strstr(line, "msb") != NULL)
            return "binary data; give text or MRC";
    }
    return NULL;
}

/* Reads the header. *text in: the file's text, out: its array. Returns the text
 * of an error, or NULL. */
static const char *read_dx_head(const char **text, tsr_map_grid *g)
{
    int n_delta = 0;
    double n_item = 0.0;
    const char *at = *text, *wrong;
    while (*at != '\0' && n_item == 0.0) {
        char line[256];
        const size_t n = strcspn(at, "\r\n");
        snprintf(line, sizeof line, "%.*s", n < 255 ? (int)n : 255, at);
        at += n + strspn(at + n, "\r\n");
        wrong = read_dx_line(line, g, &n_delta, &n_item);
        if (wrong != NULL)
            return wrong;
    }
    *text = at;
    if (g->n[0] == 0)
        return "no 'object ... class gridpositions counts'; is the file a "
               "density map?";
    if (n_delta != 3)
        return "three lines 'delta' are needed";
    if (n_item != (double)tsr_map_n_voxel(g))
        return "the number of items of the array is not that of gridpositions";
    if (n_item > (double)strlen(at)) /* checked before memory is allocated */
        return "the array ends before its items do";
    return NULL;
}

static tsr_status read_text(const char *path, tsr_pool *pool, tsr_map **out,
                            tsr_err *err)
{
    tsr_map_grid g = {.n = {0}};
    char *text, *end;
    size_t size;
    TSR_TRY(tsr_file_read(path, &text, &size, err));
    const char *at = text, *wrong = read_dx_head(&at, &g);
    tsr_status status =
        wrong == NULL ? tsr_map_new(&g, pool, out, err) : TSR_OK;
    const size_t nx = (size_t)g.n[0], ny = (size_t)g.n[1], nz = (size_t)g.n[2];
    for (size_t k = 0; k < nx * ny * nz && status == TSR_OK && wrong == NULL;
         k++) {
        const size_t z = k % nz, y = k / nz % ny, x = k / (nz * ny);
        const double value = strtod(at, &end);
        if (end == at)
            wrong = "the array ends before its items do";
        at = end;
        (*out)->value[(z * ny + y) * nx + x] =
            fabs(value) <= (double)FLT_MAX ? (float)value : NAN;
    }
    free(text);
    return wrong != NULL
               ? tsr_fail(err, TSR_E_DATA, "'%s': OpenDX: %s", path, wrong)
               : status;
}

/* The binary header of an MRC file contains zero bytes, a text file does
 * not. */
static int is_text(const unsigned char *raw, size_t n)
{
    return n > 0 && memchr(raw, '\0', n) == NULL;
}

/* Checks that steps and origin are plausible. */
static tsr_status check_grid(const char *path, const tsr_map_grid *g,
                             tsr_err *err)
{
    const char *wrong = NULL;
    for (int c = 0; c < 3; c++)
        if (!(g->step[c] >= 0.1 && g->step[c] <= 50.0))
            wrong = "expected 0.1 to 50 Angstrom; is the unit wrong (MRC "
                    "CELLA, words 11 to 13)?";
        else if (!(fabs(g->origin[c]) <= 1e6))
            wrong = "the origin is wrong (MRC ORIGIN, words 50 to 52, or "
                    "NXSTART, words 5 to 7; --origin selects the other)";
    return wrong == NULL
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "'%s': voxels of %.4g x %.4g x %.4g Angstrom, first "
                          "voxel at (%g, %g, %g): %s",
                          path, g->step[0], g->step[1], g->step[2],
                          g->origin[0], g->origin[1], g->origin[2], wrong);
}

tsr_status tsr_map_read(const char *path, tsr_map_origin origin, tsr_log *log,
                        tsr_pool *pool, tsr_map **out, tsr_err *err)
{
    *out = NULL;
    TSR_TRY(tsr_file_check_input(path, err));
    reader r = {.path = path, .stream = gzopen(path, "rb")};
    if (r.stream == NULL)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno != 0 ? errno : ENOMEM));
    int got = gzread(r.stream, r.raw, HEADER);
    tsr_status status;
    if (got <= 0)
        status = tsr_fail(err, got < 0 ? TSR_E_NOINPUT : TSR_E_DATA,
                          got < 0 ? "cannot read '%s'" : "'%s' is empty", path);
    else if (is_text(r.raw, (size_t)got))
        status = read_text(path, pool, out, err);
    else if (got < HEADER)
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' ends within its header, after %d of %d bytes",
                          path, got, (int)HEADER);
    else
        status = read_mrc(&r, origin, log, pool, out, err);
    (void)gzclose_r(r.stream);
    TSR_THEN(status, check_grid(path, &(*out)->grid, err));
    if (status == TSR_OK) {
        (*out)->path = tsr_pool_text(pool, path);
        status = tsr_pool_check(pool, err);
    }
    if (status != TSR_OK)
        *out = NULL;
    return status;
}

/* Minimum, maximum, mean and rms deviation of the finite voxels. Returns their
 * number. */
static double statistics(const tsr_map *map, double stats[4])
{
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    double n = 0.0, mean = 0.0, m2 = 0.0, low = (double)INFINITY,
           high = -(double)INFINITY;
    for (size_t k = 0; k < n_voxel; k++) {
        const double v = (double)map->value[k];
        if (isnan(v))
            continue;
        double delta = v - mean;
        mean += delta / ++n;
        m2 += delta * (v - mean);
        low = fmin(low, v), high = fmax(high, v);
    }
    stats[0] = n > 0.0 ? low : 0.0, stats[1] = n > 0.0 ? high : 0.0;
    stats[2] = mean;
    stats[3] = n > 0.0 ? sqrt(m2 / n) : 0.0;
    return n;
}

tsr_status tsr_map_check(const tsr_map *map, double resolution_ang,
                         tsr_log *log, tsr_err *err)
{
    double stats[4];
    const tsr_map_grid *g = &map->grid;
    const double n_voxel = (double)tsr_map_n_voxel(g);
    const double n = statistics(map, stats);
    const double step = fmax(g->step[0], fmax(g->step[1], g->step[2]));
    const char *wrong = NULL;
    if (n < 1.0)
        wrong = "no voxel of the map is a finite number";
    else if (stats[0] < -1e20 || stats[1] > 1e20)
        wrong = "values beyond 1e20 are not densities";
    else if (!(stats[3] > 1e-6 * fabs(stats[2])))
        wrong = "all voxels of the map have the same value";
    else if (resolution_ang > 0.0 && step > resolution_ang)
        wrong = "its voxels are wider than the resolution";
    if (wrong != NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %s (values %g to %g, voxels of %.4g Angstrom)",
                        map->path, wrong, stats[0], stats[1], step);
    if (n < n_voxel)
        tsr_info(log, "'%s': %.0f of %.0f voxels are NaN and are left out",
                 map->path, n_voxel - n, n_voxel);
    return TSR_OK;
}

/* ---- writing ---- */

tsr_status tsr_map_write(const tsr_map *map, const char *path,
                         const char *title, tsr_err *err)
{
    unsigned char raw[HEADER];
    double stats[4];
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    tsr_file_writer to;
    for (int c = 0; c < 3; c++)
        if (map->grid.n[c] > 32767)
            return tsr_fail(err, TSR_E_DATA, "'%s': %d voxels along one axis",
                            path, map->grid.n[c]);
    statistics(map, stats);
    make_header(&map->grid, stats, title, raw);
    TSR_TRY(tsr_file_begin(&to, path, err));
    int is_good =
        fwrite(raw, 1, sizeof raw, to.out) == sizeof raw &&
        fwrite(map->value, sizeof *map->value, n_voxel, to.out) == n_voxel;
    tsr_status status = TSR_OK;
    if (!is_good)
        status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", path,
                          strerror(errno));
    return tsr_file_end(&to, status, err);
}

tsr_status tsr_map_check_overlap(const tsr_map_grid *grid, const char *model,
                                 int n, const double (*xyz)[3], double least,
                                 const char *remedy, tsr_log *log, tsr_err *err)
{
    const tsr_map_grid *g = grid;
    double low[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL}, far[3];
    double high[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    int n_inside = 0;
    for (int c = 0; c < 3; c++)
        far[c] = g->origin[c] + (g->n[c] - 1) * g->step[c];
    for (int i = 0; i < n; i++) {
        int is_inside = 1;
        for (int c = 0; c < 3; c++) {
            low[c] = fmin(low[c], xyz[i][c]);
            high[c] = fmax(high[c], xyz[i][c]);
            is_inside &= xyz[i][c] >= g->origin[c] && xyz[i][c] <= far[c];
        }
        n_inside += is_inside;
    }
    char share[80] = "";
    if (n_inside > 0)
        snprintf(share, sizeof share,
                 " sufficiently (%d of %d atoms are outside)", n - n_inside, n);
    if (n_inside == 0 || n_inside < least * n)
        return tsr_fail(
            err, TSR_E_DATA,
            "%s does not overlap with the map%s: its atoms are from (%.1f, "
            "%.1f, %.1f) to (%.1f, %.1f, %.1f), the voxels from (%.1f, %.1f, "
            "%.1f) to (%.1f, %.1f, %.1f) Angstrom; %s",
            model, share, low[0], low[1], low[2], high[0], high[1], high[2],
            g->origin[0], g->origin[1], g->origin[2], far[0], far[1], far[2],
            remedy);
    if (n_inside < n)
        tsr_warn(log, "%s: %d of %d atoms are outside the map", model,
                 n - n_inside, n);
    return TSR_OK;
}
