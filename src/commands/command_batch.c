/* tessera batch: solves each row of a table in a folder of its own, and joins
 * the verdicts. Each row is a child process `tessera solve`, so that a row
 * which crashes or is killed ends alone, and the draws are those of solve. The
 * state of a batch is the folders of its rows: batch.log begins with the inputs
 * of the row, continues with the messages of solve, and ends with its exit
 * status; verdict.json has the answer. batch derives no number, and holds no
 * lock: a row whose folder another process has locked is left to that process,
 * so that several batches, on several nodes, can share the rows of a table. */
#include "commands/command.h"
#include "commands/solve.h"

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/parallel.h"
#include "core/text.h"
#include "files/file.h"
#include "files/lock.h"
#include "report/report.h"
#include "session/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

typedef struct {
    char *output, *only;
    tsr_strings device;
    long jobs, threads;
    int skip_bad, dry_run, json;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "DIR", .initial = "runs/batch",
              .doc = "output folder"),
    TSR_FIELD(INT, "jobs", options, jobs, .letter = 'j', .argument = "N",
              .min = 1, .max = TSR_MAX_THREAD,
              .doc = "rows solved at a time; default: one for each --device"),
    TSR_FIELD(STRINGS, "device", options, device, .argument = "DEVICE",
              .doc = "device as for solve; the jobs are divided among several"),
    TSR_FIELD(INT, "threads", options, threads, .argument = "N", .min = 1,
              .max = 4096,
              .doc = "number of host threads of all jobs together; default: "
                     "one for each processor"),
    TSR_FIELD(STRING, "only", options, only, .argument = "NAME",
              .doc = "solve this row, and write no table"),
    TSR_FIELD(BOOL, "skip-bad", options, skip_bad,
              .doc = "solve the other rows where some cannot be read"),
    TSR_FIELD(BOOL, "dry-run", options, dry_run,
              .doc = "check the rows and write the table, but start nothing"),
    TSR_OPTION_JSON(options),
    {0}};

/* States of a row, in the order in which they need a look. */
typedef enum {
    FAILED,
    INTERRUPTED,
    NOT_CONVERGED,
    MISFIT,
    UNDECIDED,
    WAITING,
    RUNNING,
    FINE
} row_state;
static const char *const state_name[] = {
    "failed",    "interrupted", "not converged", "misfit",
    "undecided", "waiting",     "running",       "fine"};

/* Columns of the table: first those of the input, then those of batch, then
 * members of verdict.json. */
#define COLUMNS(X)                                      \
    X(NAME, "name", NULL)                               \
    X(MODEL, "model", NULL)                             \
    X(CURVE, "curve", NULL)                             \
    X(OPTIONS, "options", NULL)                         \
    X(STATE, "state", NULL)                             \
    X(MESSAGE, "message", NULL)                         \
    X(SECONDS, "seconds", NULL)                         \
    X(STATES, "states", "states")                       \
    X(IS_UNDECIDED, "undecided", "undecided")           \
    X(CONVERGED, "converged", "converged")              \
    X(WORST, "worst", "worst")                          \
    X(FITS, "fits", "fits")                             \
    X(CHI2, "chi2", "chi2.mean")                        \
    X(CHI2_Q5, "chi2_q5", "chi2.q5")                    \
    X(CHI2_Q95, "chi2_q95", "chi2.q95")                 \
    X(RG, "rg", "rg.mean")                              \
    X(RG_Q5, "rg_q5", "rg.q5")                          \
    X(RG_Q95, "rg_q95", "rg.q95")                       \
    X(D_MAX, "d_max", "d_max.mean")                     \
    X(D_MAX_Q5, "d_max_q5", "d_max.q5")                 \
    X(D_MAX_Q95, "d_max_q95", "d_max.q95")              \
    X(RIGID_CHI2, "rigid_chi2", "rigid.0.reduced_chi2") \
    X(RIGID_RG, "rigid_rg", "rigid.0.rg_guinier")       \
    X(DATA_RG, "data_rg", "rigid.0.rg_guinier_data")    \
    X(REPORT, "report", "report")
#define COLUMN_NUMBER(number, name, path) number,
#define COLUMN_NAME(number, name, path) name,
#define COLUMN_PATH(number, name, path) path,
enum { COLUMNS(COLUMN_NUMBER) N_COLUMN, N_INPUT = STATE };
static const char *const column[] = {COLUMNS(COLUMN_NAME)};
static const char *const column_path[] = {COLUMNS(COLUMN_PATH)};

typedef struct {
    tsr_pool pool; /* owns the members read from the folder of the row */
    const char *value[N_COLUMN]; /* as in JSON; "": none */
    wordexp_t line;              /* the command line of solve */
    const char *folder, *log;
    const char *inputs; /* the lines that begin the log */
    const char *bad;    /* why the row cannot be solved; NULL: it can */
    row_state state, at_start;
    pid_t pid; /* of solve, while it runs */
    double begin;
} row;

typedef struct {
    const tsr_args *args;
    const options *o;
    tsr_log *log;
    tsr_pool pool; /* owns the texts below and the arrays */
    const char *output, *program;
    char *table;        /* text, cut into the cells of the rows */
    int n, n_job, next; /* next: row that may be started */
    row *row;           /* [n] */
    row **job;      /* [n_job] the row that is solved; NULL: the job is idle */
    int stop[2];    /* a pipe: solve ends when its second end is closed */
    double written; /* time of the last table */
} work;

static double number(const row *r, int at)
{
    return r->value[at][0] != '\0' ? strtod(r->value[at], NULL) : (double)NAN;
}

/* ---- rows ---- */

/* Returns the text of *rest up to the character `mark`, which becomes NUL, and
 * moves *rest behind it, like strsep. */
static char *cut(char **rest, char mark)
{
    char *text = *rest, *at = text != NULL ? strchr(text, mark) : NULL;
    *rest = at != NULL ? at + 1 : NULL;
    if (at != NULL)
        *at = '\0';
    return text;
}

/* Finds the columns of the input. place [N_INPUT] out: their number, -1:
 * absent. A table may have other columns, but no misspelt ones. */
static tsr_status read_head(char *line, int *place, tsr_err *err)
{
    char *name;
    for (int k = 0; k < N_INPUT; k++)
        place[k] = -1;
    for (int n = 0; (name = cut(&line, '\t')) != NULL; n++) {
        tsr_nearest nearest = {.typed = name};
        for (int k = 0; k < N_COLUMN; k++) {
            tsr_nearest_try(&nearest, column[k]);
            if (k < N_INPUT && strcmp(name, column[k]) == 0)
                place[k] = n;
        }
        if (nearest.best != NULL && strcmp(nearest.best, name) != 0)
            return tsr_fail(err, TSR_E_DATA, "column '%s': did you mean '%s'?",
                            name, nearest.best);
    }
    return place[NAME] >= 0 && place[MODEL] >= 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "the first line must name the columns, with tabs "
                          "between them: name, model, curve, options");
}

/* Reads the rows, or that of --only; cuts the table into cells. */
static tsr_status read_rows(work *w, tsr_err *err)
{
    const char *only = w->o->only;
    int place[N_INPUT], has_head = 0;
    char *text = w->table, *line, *cell;
    while ((line = cut(&text, '\n')) != NULL) {
        line[strcspn(line, "\r")] = '\0';
        if (line[0] == '#' || line[strspn(line, " \t")] == '\0')
            continue;
        if (!has_head++) {
            TSR_TRY(read_head(line, place, err));
            continue;
        }
        row r = {.state = WAITING};
        for (int k = 0; k < N_COLUMN; k++)
            r.value[k] = "";
        for (int n = 0; (cell = cut(&line, '\t')) != NULL; n++)
            for (int k = 0; k < N_INPUT; k++)
                if (place[k] == n)
                    r.value[k] = cell;
        if (only != NULL && strcmp(only, r.value[NAME]) != 0)
            continue;
        w->row = tsr_pool_resize(&w->pool, w->row, (size_t)w->n + 1, sizeof r);
        TSR_TRY(tsr_pool_check(&w->pool, err));
        w->row[w->n++] = r;
    }
    return w->n > 0 ? TSR_OK
                    : tsr_fail(err, TSR_E_DATA, "has no rows%s%s",
                               only != NULL ? " of the name " : "",
                               only != NULL ? only : "");
}

/* Lists the files of a folder with these endings, as words of a shell: the file
 * with the name `first` before the ending, or else all. */
static const char *list_files(work *w, const char *folder, const char *first,
                              const char *endings)
{
    struct dirent **file = NULL;
    const char *list[2] = {"", ""}; /* files of this name, other files */
    char shown[TSR_SHELL_SIZE];
    regex_t ending;
    regmatch_t at;
    if (regcomp(&ending, endings, REG_EXTENDED) != 0)
        return NULL;
    const int n = scandir(folder, &file, NULL, alphasort);
    for (int k = 0; k < n; k++) {
        const char *name = file[k]->d_name;
        if (name[0] != '.' && !w->pool.failed &&
            regexec(&ending, name, 1, &at, 0) == 0) {
            const size_t length = (size_t)at.rm_so;
            const char **to = &list[length != strlen(first) ||
                                    strncmp(name, first, length) != 0];
            *to = tsr_pool_format(
                &w->pool, "%s%s%s", *to, **to != '\0' ? " " : "",
                tsr_text_shell(tsr_path_in(folder, name).text, shown));
        }
        free(file[k]);
    }
    free(file);
    regfree(&ending);
    return list[0] == NULL || *list[0] != '\0' ? list[0] : list[1];
}

/* Makes the table of the current folder: a row for each sub-folder with a model
 * or a curve. NULL: out of memory; the caller frees it. */
static char *table_of_folder(work *w)
{
    struct dirent **sub = NULL;
    const int n = scandir(".", &sub, NULL, alphasort);
    tsr_words table;
    tsr_words_begin(&table);
    tsr_words_add(&table, "name\tmodel\tcurve\n");
    for (int k = 0; k < n; k++) {
        const char *name = sub[k]->d_name;
        const char *model =
            list_files(w, name, "model", "\\.(pdb|ent|cif|mmcif)(\\.gz)?$");
        const char *curve =
            list_files(w, name, "exp", "\\.(dat|xml|h5|sascif)(\\.gz)?$");
        if (name[0] != '.' && model != NULL && curve != NULL &&
            (*model != '\0' || *curve != '\0'))
            tsr_words_add(&table, "%s\t%s\t%s\n",
                          strpbrk(name, "\t\r\n") != NULL ? "?" : name, model,
                          curve);
        free(sub[k]);
    }
    free(sub);
    return tsr_words_end(&table);
}

/* The place of the device in a command line. */
enum { DEVICE_WORD = 7 };

/* Makes the command line of a row: fixed words, then those that a shell reads
 * in the columns. */
static tsr_status set_words(work *w, row *r, tsr_err *err)
{
    const long threads =
        w->o->threads > 0 ? w->o->threads : tsr_parallel_processors();
    const char *const share = tsr_pool_format(
        &w->pool, "%ld", threads > w->n_job ? threads / w->n_job : 1);
    r->folder = tsr_pool_format(&w->pool, "%s/%s", w->output, r->value[NAME]);
    r->log = tsr_pool_format(&w->pool, "%s/batch.log", r->folder);
    const char *const begin[] = {"tessera",   "solve", "--output", r->folder,
                                 "--threads", share,   "--device", "auto"};
    const size_t n_begin =
        w->o->device.n > 0 ? DEVICE_WORD + 1 : DEVICE_WORD - 1;
    const size_t n_common = (size_t)w->args->n - 1;
    const char *text = "";
    size_t n_file = 0;
    for (int at = MODEL; at <= OPTIONS && r->bad == NULL; at++) {
        text = tsr_pool_format(&w->pool, "%s %s", text, r->value[at]);
        TSR_TRY(tsr_pool_check(&w->pool, err));
        n_file = r->line.we_wordc;
        wordfree(&r->line);
        r->line = (wordexp_t){.we_offs = n_begin + n_common};
        if (wordexp(text, &r->line, WRDE_DOOFFS | WRDE_NOCMD | WRDE_UNDEF) != 0)
            r->bad = "a shell cannot read the words of a column: quotes go "
                     "round ( ) { } < > & | ; $";
        else if (at == MODEL && r->line.we_wordc == 0)
            r->bad = "it has no model";
        else if (at == MODEL && r->line.we_wordc > 1)
            r->bad = "there must be one model: of several, a folder's is "
                     "model.*";
    }
    char **word = r->line.we_wordv;
    if (r->bad != NULL)
        return TSR_OK;
    memcpy(word, begin, n_begin * sizeof *word);
    memcpy(word + n_begin, w->args->argument + 1, n_common * sizeof *word);
    for (word += n_begin + n_common; n_file > 0; n_file--, word++) {
        char *relative = *word;
        TSR_TRY(tsr_file_absolute(relative, word, err));
        free(relative);
    }
    return TSR_OK;
}

static void check_name(const work *w, row *r)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *name = r->value[NAME];
    if (name[0] == '\0' || name[0] == '.' || name[0] == '-' ||
        name[strspn(name, plain)] != '\0' || strlen(name) > 200 ||
        strncmp(name, "batch.", 6) == 0 || strcmp(name, "index.html") == 0)
        r->bad = "a name has letters, digits, '.', '_' and '-', begins with "
                 "neither '.' nor '-', and is not batch.* or index.html";
    for (const row *other = w->row; other < r; other++)
        if (strcmp(other->value[NAME], name) == 0)
            r->bad = "another row has the same name";
}

/* Runs `solve` on a row as far as its inputs are read, to find mistakes before
 * the first row starts. */
static tsr_status check_row(work *w, row *r, tsr_err *err)
{
    static const char before[] = "tessera solve: ";
    tsr_command command = tsr_command_solve;
    const tsr_command *const list[] = {&command, NULL};
    tsr_words out, message;
    int code = 0;
    command.run = tsr_solve_check;
    tsr_words_begin(&out);
    tsr_words_begin(&message);
    if (out.out != NULL && message.out != NULL)
        code = tsr_program(list, "", (int)(r->line.we_offs + r->line.we_wordc),
                           (const char *const *)r->line.we_wordv, out.out,
                           message.out);
    char *files = tsr_words_end(&out), *why = tsr_words_end(&message);
    const int is_lost = files == NULL || why == NULL;
    const char *line = is_lost ? NULL : strstr(why, before);
    line = line != NULL ? line + strlen(before) : why;
    if (!is_lost && code != 0)
        r->bad =
            tsr_pool_format(&w->pool, "%.*s", (int)strcspn(line, "\n"), line);
    r->inputs = tsr_pool_format(&w->pool, "%soptions: %s\n\n",
                                is_lost ? "" : files, r->value[OPTIONS]);
    free(files);
    free(why);
    return is_lost ? tsr_no_memory(err) : tsr_pool_check(&w->pool, err);
}

/* ---- the state of a row, from its folder ---- */

/* The value at a path, a text without its quotes. "": null or absent. */
static const char *read_value(tsr_pool *pool, const char *json, size_t size,
                              const char *path)
{
    tsr_json_reader r = {.at = json, .end = json + size};
    char text[2048] = "";
    if (!tsr_json_find(&r, path) || tsr_json_peek(&r) == 'n')
        return "";
    const char *from = r.at;
    if (*from == '"')
        tsr_json_read_text(&r, sizeof text, text);
    else {
        tsr_json_skip(&r);
        snprintf(text, sizeof text, "%.*s", (int)(r.at - from), from);
    }
    const char *value = tsr_pool_text(pool, text);
    return value != NULL ? value : "";
}

/* Reads verdict.json. Returns the state of a row whose solve ended with 0. */
static row_state read_verdict(row *r)
{
    char *json = NULL;
    size_t size;
    const char *const *v = r->value;
    if (tsr_file_read(tsr_path_in(r->folder, "verdict.json").text, &json, &size,
                      NULL) != TSR_OK)
        return INTERRUPTED;
    for (int k = STATES; k < N_COLUMN; k++)
        r->value[k] = read_value(&r->pool, json, size, column_path[k]);
    const char *finished = read_value(&r->pool, json, size, "finished");
    free(json);
    return strcmp(finished, "true") != 0          ? INTERRUPTED
           : strcmp(v[CONVERGED], "false") == 0   ? NOT_CONVERGED
           : strcmp(v[FITS], "false") == 0        ? MISFIT
           : strcmp(v[IS_UNDECIDED], "true") == 0 ? UNDECIDED
                                                  : FINE;
}

/* Reads message and seconds from the log. Returns the exit status of solve, -1
 * where its line is not the last: it was killed together with batch. */
static int read_log(row *r, char *log)
{
    static const char failed[] = "tessera solve: ";
    int code = -1, is_last = 0;
    double seconds = 0.0, part;
    const char *line, *message = NULL;
    while ((line = cut(&log, '\n')) != NULL) {
        if (sscanf(line, "tessera batch: exit status %d after %lf", &code,
                   &part) == 2) {
            seconds += part;
            is_last = 1;
        } else if (line[0] != '\0')
            is_last = 0;
        if (strncmp(line, failed, strlen(failed)) == 0)
            message = line + strlen(failed);
    }
    r->value[SECONDS] = tsr_pool_format(&r->pool, "%.1f", seconds);
    if (!is_last || code == 0)
        return is_last ? 0 : -1;
    r->value[MESSAGE] = code < 128 && message != NULL
                            ? tsr_pool_text(&r->pool, message)
                            : tsr_pool_format(&r->pool, "exit status %d", code);
    return code;
}

/* 1: solve was killed together with batch (-1), stopped in good order by a
 * signal, or ended by one before its handlers were installed. */
static int is_stopped(int code)
{
    return code == -1 || code == tsr_exit_status(TSR_E_INTERRUPTED) ||
           code == 128 + SIGTERM || code == 128 + SIGINT ||
           code == 128 + SIGHUP || code == 128 + SIGQUIT;
}

static tsr_status read_state(row *r, tsr_err *err)
{
    tsr_lock_holder holder = {0};
    char *log = NULL;
    size_t size;
    tsr_pool_clear(&r->pool);
    for (int k = STATE; k < N_COLUMN; k++)
        r->value[k] = "";
    r->state = WAITING;
    if (r->bad == NULL && tsr_file_read(r->log, &log, &size, NULL) == TSR_OK) {
        if (strncmp(log, r->inputs, strlen(r->inputs)) != 0)
            r->bad = "its folder was made of other files or options; move the "
                     "folder, or give the row another name";
        const int code = read_log(r, log);
        const row_state done = read_verdict(r);
        r->state = code == 0 ? done : is_stopped(code) ? INTERRUPTED : FAILED;
        free(log);
    }
    if (r->bad != NULL) {
        r->state = FAILED;
        r->value[MESSAGE] = r->bad;
    }
    (void)tsr_lock_query(r->folder, &holder, NULL);
    if (holder.is_held)
        r->state = RUNNING;
    r->value[STATE] = state_name[r->state];
    return tsr_pool_check(&r->pool, err);
}

/* ---- the files of a batch ---- */

static void write_tsv(const work *w, FILE *out)
{
    for (int k = 0; k < N_COLUMN; k++)
        fprintf(out, "%s%s", k > 0 ? "\t" : "", column[k]);
    for (const row *r = w->row; r < w->row + w->n; r++)
        for (int k = 0; k < N_COLUMN; k++) {
            fputc(k > 0 ? '\t' : '\n', out);
            for (const char *c = r->value[k]; *c != '\0'; c++)
                fputc(*c == '\t' ? ' ' : *c, out);
        }
    fputc('\n', out);
}

static void write_json(const work *w, FILE *out)
{
    tsr_json j = {.out = out};
    tsr_json_members(&j, "{ batch %s directory %s rows[", w->args->argument[0],
                     w->output);
    for (const row *r = w->row; r < w->row + w->n; r++) {
        tsr_json_object(&j, NULL);
        for (int k = 0; k < N_COLUMN; k++) {
            const char *key = column[k], *v = r->value[k];
            if (k < SECONDS || k == WORST || k == REPORT || *v == '\0')
                tsr_json_text(&j, key, *v != '\0' ? v : NULL);
            else if (*v == 't' || *v == 'f')
                tsr_json_boolean(&j, key, *v == 't');
            else
                tsr_json_number(&j, key, number(r, k));
        }
        tsr_json_close(&j);
    }
    tsr_json_members(&j, "] }");
}

/* "28.4 [28.1, 28.8]" from a column and the two behind it. */
static const char *interval(const row *r, int at, char text[64])
{
    const tsr_convergence c = {.mean = number(r, at),
                               .q5 = number(r, at + 1),
                               .q95 = number(r, at + 2)};
    return tsr_report_interval(&c, text);
}

static void add_line(tsr_page *page, const row *r)
{
    const char *name = r->value[NAME], *message = r->value[MESSAGE];
    const char *report = r->value[REPORT]; /* linked if in the row's folder */
    const size_t n = strlen(r->folder);
    char chi2[64], rg[64], d_max[64];
    FILE *out = tsr_page_html(page);
    name = tsr_page_escape(page, name);
    report = strncmp(report, r->folder, n) == 0 ? report + n : "";
    fprintf(out, "<tr><td><a href=\"%s%s\">%s</a></td><td>", name, report,
            name);
    if (*report != '\0') /* NAME/1/report.html: NAME/1/report/fit.svg */
        fprintf(out,
                "<img src=\"%s%.*s/fit.svg\" width=\"240\" loading=\"lazy\" "
                "alt=\"\">",
                name, (int)(strrchr(report, '.') - report), report);
    fprintf(
        out,
        "</td><td class=\"%s\">%s</td><td>%s</td><td>%s</td><td>%s</td>"
        "<td>%s</td><td>%s</td><td>%s</td><td class=\"words\">%s</td>"
        "</tr>\n",
        r->state == FINE     ? "yes"
        : r->state == FAILED ? "no"
                             : "open",
        r->value[STATE], tsr_page_number(page, 2, number(r, RIGID_CHI2)),
        tsr_page_number(page, 0, number(r, STATES)), interval(r, CHI2, chi2),
        interval(r, RG, rg), interval(r, D_MAX, d_max), r->value[SECONDS],
        tsr_page_escape(page, *message != '\0' ? message : r->value[WORST]));
}

static tsr_status write_page(const work *w, const char *path, tsr_err *err)
{
    tsr_page *page = tsr_page_new(tsr_text_file_name(w->output), w->output);
    TSR_TRY(tsr_allocated(page, err));
    tsr_page_column(page);
    tsr_page_words(page,
                   "Rows that need a look come first. &chi;&sup2;/N, Rg and "
                   "D<sub>max</sub>: means over the draws, with 90&nbsp;%% "
                   "intervals.");
    tsr_page_table(page, "",
                   "row\tfit\tstate\trigid, &chi;&sup2;\tstates\t&chi;&sup2;/N"
                   "\tRg (&Aring;)\tD<sub>max</sub> (&Aring;)\ts\tremark");
    for (row_state state = FAILED; state <= FINE; state++)
        for (int i = 0; i < w->n; i++)
            if (w->row[i].state == state)
                add_line(page, &w->row[i]);
    tsr_page_table_end(page);
    const tsr_status status = tsr_page_write(page, path, err);
    tsr_page_free(page);
    return status;
}

static const struct {
    const char *name, *begins;
} files[] = {{"batch.tsv", "name\tmodel\tcurve\toptions\tstate"},
             {"batch.json", "{\"batch\": "},
             {"index.html", "<!doctype html>"}};

/* Reads the state of all rows, and writes table, JSON and page; with --only, no
 * files. */
static tsr_status update(work *w, tsr_err *err)
{
    tsr_file_writer to = {.out = NULL};
    for (int i = 0; i < w->n; i++)
        TSR_TRY(read_state(&w->row[i], err));
    w->written = tsr_clock_s();
    for (int i = 0; i < 2 && w->o->only == NULL; i++) {
        TSR_TRY(tsr_file_begin(&to, tsr_path_in(w->output, files[i].name).text,
                               err));
        (i == 0 ? write_tsv : write_json)(w, to.out);
        TSR_TRY(tsr_file_end(&to, TSR_OK, err));
    }
    return w->o->only != NULL
               ? TSR_OK
               : write_page(w, tsr_path_in(w->output, files[2].name).text, err);
}

/* ---- jobs ---- */

/* Opens the log of a row for additions; it begins with the inputs. */
static FILE *open_log(const row *r)
{
    FILE *log = fopen(r->log, "a");
    if (log != NULL && fseek(log, 0, SEEK_END) == 0 && ftell(log) == 0)
        fputs(r->inputs, log);
    return log;
}

/* Starts solve with its messages in the log. */
static tsr_status start(const work *w, row *r, tsr_err *err)
{
    (void)mkdir(r->folder, 0777);
    FILE *log = open_log(r);
    r->begin = tsr_clock_s();
    r->pid = log != NULL && fflush(log) == 0 ? fork() : -1;
    if (r->pid == 0) { /* only calls that POSIX allows after fork */
        if (dup2(w->stop[0], 0) == 0 && dup2(fileno(log), 1) == 1 &&
            dup2(1, 2) == 2)
            execv(w->program, r->line.we_wordv);
        _exit(127);
    }
    const int code = errno;
    if (log != NULL)
        fclose(log);
    return r->pid > 0 ? TSR_OK
                      : tsr_fail(err, TSR_E_IO, "cannot start '%s': %s", r->log,
                                 strerror(code));
}

/* Notes the end of a row. status: of waitpid. */
static tsr_status finish(work *w, row *r, int status, tsr_err *err)
{
    FILE *log = open_log(r);
    if (log == NULL ||
        fprintf(log, "tessera batch: exit status %d after %.1f s\n",
                WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                    : WEXITSTATUS(status),
                tsr_clock_s() - r->begin) < 0 ||
        fclose(log) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", r->log,
                        strerror(errno));
    TSR_TRY(read_state(r, err));
    tsr_log_write(w->log, r->state == FAILED ? TSR_LOG_WARNING : TSR_LOG_INFO,
                  "%s: %s, %s s%s%s", r->value[NAME], r->value[STATE],
                  r->value[SECONDS], r->value[MESSAGE][0] != '\0' ? ": " : "",
                  r->value[MESSAGE]);
    return tsr_clock_s() - w->written > 10.0 ? update(w, err) : TSR_OK;
}

/* 1: the row is due. A row that had failed before this batch began is solved
 * again; a failure since then, in another process, is left alone. For a row
 * whose runs were too short, solve decides whether they are long enough now. */
static int is_due(const row *r)
{
    return r->state == WAITING || r->state == INTERRUPTED ||
           (r->bad == NULL && r->state == r->at_start &&
            (r->state == FAILED || r->state == NOT_CONVERGED ||
             r->state == UNDECIDED));
}

/* Starts the next row that is due in an idle job. */
static tsr_status start_next(work *w, int at, tsr_err *err)
{
    const tsr_strings *device = &w->o->device;
    for (; w->job[at] == NULL && w->next < w->n; w->next++) {
        row *r = &w->row[w->next];
        TSR_TRY(read_state(r, err));
        if (!is_due(r))
            continue;
        if (device->n > 0)
            r->line.we_wordv[DEVICE_WORD] = device->item[at % device->n];
        TSR_TRY(start(w, r, err));
        w->job[at] = r;
    }
    return TSR_OK;
}

static tsr_status solve_rows(work *w, tsr_err *err)
{
    char *folder = tsr_file_program_folder();
    tsr_status status = TSR_OK;
    int n_running, code;
    w->program =
        tsr_pool_format(&w->pool, "%s/tessera", folder != NULL ? folder : "");
    free(folder);
    tsr_pool_array(&w->pool, w->job, w->n_job);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    if (pipe(w->stop) != 0 || fcntl(w->stop[1], F_SETFD, FD_CLOEXEC) != 0 ||
        setenv("TESSERA_STOP_AT_EOF", "1", 1) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot start processes: %s",
                        strerror(errno));
    tsr_interrupt_catch();
    do {
        n_running = 0;
        for (int at = 0; at < w->n_job; at++) {
            row *r = w->job[at];
            if (r != NULL && waitpid(r->pid, &code, WNOHANG) == r->pid) {
                tsr_status ended =
                    finish(w, r, code, status == TSR_OK ? err : NULL);
                status = status == TSR_OK ? ended : status;
                w->job[at] = NULL;
            }
            if (status == TSR_OK && !tsr_stop_requested)
                status = start_next(w, at, err);
            n_running += w->job[at] != NULL;
        }
        if ((status != TSR_OK || tsr_stop_requested) && w->stop[1] >= 0) {
            close(w->stop[1]);
            w->stop[1] = -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    } while (n_running > 0);
    return status;
}

/* ---- the command ---- */

/* Checks the output, makes the folder of the table current, and reads the
 * table. */
static tsr_status open_table(work *w, tsr_err *err)
{
    const char *source = w->args->argument[0];
    const tsr_file_target target = {
        .maker = "batch", .n_input = 1, .input = &source};
    char *path = NULL;
    size_t size;
    TSR_TRY(tsr_file_absolute(w->o->output, &path, err));
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/';)
        path[--n] = '\0';
    w->output = tsr_pool_text(&w->pool, path);
    free(path);
    path = tsr_pool_format(&w->pool, "./%.*s",
                           (int)(tsr_text_file_name(source) - source), source);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int i = 0; i < 3; i++)
        TSR_TRY(tsr_file_check_target(
            &target, tsr_path_in(w->output, files[i].name).text,
            files[i].begins, NULL, err));
    if (chdir(source) == 0)
        return tsr_allocated(w->table = table_of_folder(w), err);
    TSR_TRY(tsr_file_read(source, &w->table, &size, err));
    return chdir(source[0] == '/' ? path + 2 : path) == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_NOINPUT, "cannot enter '%s': %s", path,
                          strerror(errno));
}

static tsr_status check_rows(work *w, tsr_err *err)
{
    int n_bad = 0;
    for (row *r = w->row; r < w->row + w->n; r++) {
        check_name(w, r);
        TSR_TRY(set_words(w, r, err));
        if (r->bad == NULL)
            TSR_TRY(check_row(w, r, err));
        TSR_TRY(read_state(r, err));
        r->at_start = r->state;
        n_bad += r->bad != NULL;
        if (r->bad != NULL)
            tsr_warn(w->log, "row '%s': %s", r->value[NAME], r->bad);
    }
    return n_bad == 0 || w->o->skip_bad
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "%d of %d rows cannot be solved, so none was "
                          "started; --skip-bad solves the others",
                          n_bad, w->n);
}

static tsr_status conclude(const work *w, FILE *out, tsr_err *err)
{
    int n[FINE + 1] = {0};
    for (int i = 0; i < w->n; i++)
        n[w->row[i].state]++;
    (w->o->json ? write_json : write_tsv)(w, out);
    if (w->o->only == NULL)
        tsr_info(w->log, "wrote %s/index.html, batch.tsv and batch.json",
                 w->output);
    if (w->o->dry_run)
        return TSR_OK;
    if (n[WAITING] + n[INTERRUPTED] + n[RUNNING] > 0)
        return tsr_fail(err, TSR_E_INTERRUPTED,
                        "%d rows were interrupted or not begun, and %d are "
                        "solved by other processes; repeat the command to "
                        "continue",
                        n[WAITING] + n[INTERRUPTED], n[RUNNING]);
    return n[FAILED] + n[NOT_CONVERGED] == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_NO,
                          "of %d rows %d failed and %d have not converged",
                          w->n, n[FAILED], n[NOT_CONVERGED]);
}

static tsr_status batch(const tsr_args *args, FILE *out, tsr_log *log,
                        tsr_err *err)
{
    const options *o = args->options;
    work w = {.args = args, .o = o, .log = log};
    int n_folder = 0;
    w.n_job = o->jobs > 0 ? (int)o->jobs : o->device.n > 0 ? o->device.n : 1;
    tsr_status status = open_table(&w, err);
    TSR_THEN(status, read_rows(&w, err));
    status = tsr_wrap(err, status, "'%s'", args->argument[0]);
    TSR_THEN(status, check_rows(&w, err));
    TSR_THEN(status, tsr_run_directory_make_folders(w.output, &n_folder, err));
    if (!o->dry_run)
        TSR_THEN(status, solve_rows(&w, err));
    TSR_THEN(status, update(&w, err));
    TSR_THEN(status, conclude(&w, out, err));
    for (int i = 0; i < w.n; i++) {
        wordfree(&w.row[i].line);
        tsr_pool_clear(&w.row[i].pool);
    }
    free(w.table);
    tsr_pool_clear(&w.pool);
    return status;
}

const tsr_command tsr_command_batch = {
    .name = "batch",
    .doc = "solve a table of models and curves, and join the answers",
    .arguments = "TABLE [OPTION]...",
    .options = fields,
    .size = sizeof(options),
    .about =
        "TABLE has tabs between columns and their names in the first line: "
        "name, model, curve (one file or more), options (of solve, for this "
        "row). Paths are relative to TABLE; the words of a column are those "
        "that a shell would read. '#' begins a comment. A folder in place of "
        "TABLE has a row for each of its folders with a model (of several, "
        "model.*) and curves (exp.* alone, if it exists). OPTIONs after -- are "
        "those of solve for all rows.\n\n"
        "All rows are checked before the first starts. Each is solved in "
        "DIR/NAME, by a process of its own with its messages in batch.log. "
        "DIR/batch.tsv and batch.json have the numbers of all verdicts; "
        "index.html has pictures of the fits, first those that need a look.\n\n"
        "The same command continues after Ctrl-C or a kill. Rows that are done "
        "are not repeated; rows that failed are. Several processes, also on "
        "several machines, can work on one DIR: each takes the next row that "
        "is free. Exit status: 75 where rows are left, after an interruption "
        "or "
        "because other processes solve them; else 1 where a row failed or has "
        "not converged.",
    .run = batch};
