/* The text of device.use selects the intended devices from a fixed list. */
#include "gpu/device.h"
#include "tests/test.h"

enum { N = 5 };

static const tsr_device_info list[N] = {
    ROW(.index = 0, .type = TSR_DEVICE_CPU, .name = "pthread", .driver = "3.1"),
    ROW(.index = 1, .type = TSR_DEVICE_GPU, .name = "Small GPU", .driver = "7",
        .compute_units = 16),
    ROW(.index = 2, .type = TSR_DEVICE_GPU, .name = "Large GPU", .driver = "7",
        .compute_units = 132),
    ROW(.index = 3, .type = TSR_DEVICE_GPU, .name = "Large GPU", .driver = "7",
        .compute_units = 132),
    ROW(.index = 4, .type = TSR_DEVICE_GPU, .name = "Large GPU", .driver = "8",
        .compute_units = 132)};

TEST(lists_that_are_right)
{
    static const struct {
        const char *choice;
        int n, chosen[N];
    } known[] = {{"auto", 1, {2}},
                 {"gpu", 1, {2}},
                 {"cpu", 1, {0}},
                 {"3", 1, {3}},
                 {"small", 1, {1}},
                 {"0,1", 2, {0, 1}},
                 {"4,1,2", 3, {4, 1, 2}},
                 {" 1 , cpu ", 2, {1, 0}},
                 {"gpu,pthread", 2, {2, 0}},
                 {"all-gpu", 4, {1, 2, 3, 4}},
                 {"cpu,all-gpu", 5, {0, 1, 2, 3, 4}},
                 {"all", 5, {0, 1, 2, 3, 4}}};
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        int chosen[N], n;
        err = (tsr_err){0};
        if (tsr_device_choose_many(known[k].choice, N, list, chosen, &n,
                                   &err) != TSR_OK)
            fail_msg("%s: %s", known[k].choice, err.message);
        assert_int_equal(n, known[k].n);
        for (int i = 0; i < n; i++)
            if (chosen[i] != known[k].chosen[i])
                fail_msg("%s: device %d is %d, expected %d", known[k].choice, i,
                         chosen[i], known[k].chosen[i]);
    }
}

TEST(lists_that_are_wrong)
{
    static const struct {
        const char *choice;
        tsr_status status;
        const char *message;
    } known[] = {
        {"5", TSR_E_DEVICE, "'5'; devices: 0: pthread (CPU); 1: Small GPU"},
        {"-1", TSR_E_DEVICE, "'-1'"},
        {"0,quantum", TSR_E_DEVICE, "'quantum'; devices: 0: pthread"},
        {"", TSR_E_DEVICE, "''"},
        {"0,,1", TSR_E_DEVICE, "''"},
        {"0,", TSR_E_DEVICE, "''"},
        {"0,0", TSR_E_CONFIG, "'0,0' names device 0 (pthread) twice"},
        {"cpu,1,0", TSR_E_CONFIG, "device 0 (pthread) twice"},
        {"2,all-gpu", TSR_E_CONFIG, "device 2 (Large GPU) twice"},
        {"large,2", TSR_E_CONFIG, "device 2 (Large GPU) twice"},
        {"all,all", TSR_E_CONFIG, "twice"},
        {"0,reference", TSR_E_CONFIG, "cannot be combined"},
    };
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        int chosen[N], n;
        err = (tsr_err){0};
        tsr_status status =
            tsr_device_choose_many(known[k].choice, N, list, chosen, &n, &err);
        if (status != known[k].status ||
            strstr(err.message, known[k].message) == NULL)
            fail_msg("'%s': status %d, %s", known[k].choice, (int)status,
                     err.message);
    }
}

TEST(no_gpu_is_said)
{
    int chosen[1], n;
    FAILS(tsr_device_choose_many("all-gpu", 1, list, chosen, &n, &err),
          TSR_E_DEVICE, "'all-gpu'");
}
