/* A setup from a configuration in words. */
#ifndef TESTS_SETUP_SAMPLE_H
#define TESTS_SETUP_SAMPLE_H

#include "posterior/setup.h"
#include "tests/check.h"

#include <unistd.h>

typedef struct {
    tsr_config config;
    tsr_setup s;
} sample;

static inline void release_sample(void *object)
{
    sample *x = object;
    tsr_setup_clear(&x->s);
    tsr_config_clear(&x->config);
}

static inline void sample_prepare(sample *x, int with_data, int n_set,
                                  const char *const *set, const char *text)
{
    char path[] = "sample_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    *x = (sample){.s = {.n_thread = 0}};
    const tsr_status status =
        tsr_config_read(path, n_set, set, &x->config, &err);
    unlink(path);
    OK(status);
    OK(tsr_setup_read(&x->config, with_data, NULL, &x->s, &err));
}

/* Without engines; paths are relative to the current folder. */
static inline void read_sample(sample *x, int with_data, int n_set,
                               const char *const *set, const char *text)
{
    sample_prepare(x, with_data, n_set, set, text);
    own_copy(x, release_sample);
}

static inline void start_sample(sample *x, int n_set, const char *const *set,
                                const char *text)
{
    sample_prepare(x, 1, n_set, set, text);
    OK(tsr_setup_engine(&x->config, 0, NULL, &x->s, &err));
    own_copy(x, release_sample);
}

#endif
