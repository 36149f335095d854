/* Roots by subdivision: an interval is halved (de Casteljau) until Descartes'
 * rule says that it has one root or none. */
#include "moves/closure_roots.h"

#include <math.h>
#include <string.h>

enum { N = TSR_ROOT_DEGREE, MAX_SPLIT = 256, DEPTH = 22 };

static const double binomial[N + 1] = {
    1.0,     16.0,   120.0,  560.0,  1820.0, 4368.0, 8008.0, 11440.0, 12870.0,
    11440.0, 8008.0, 4368.0, 1820.0, 560.0,  120.0,  16.0,   1.0};

static int sign_changes(const double b[N + 1])
{
    int n = 0;
    for (int k = 0; k < N; k++)
        n += (b[k] < 0.0) != (b[k + 1] < 0.0);
    return n;
}

/* de Casteljau at the middle: b becomes the right half. */
static void split(double b[N + 1], double left[N + 1])
{
    left[0] = b[0];
    for (int r = 1; r <= N; r++) {
        for (int k = 0; k <= N - r; k++)
            b[k] = 0.5 * (b[k] + b[k + 1]);
        left[r] = b[0];
    }
}

/* Where the control polygon crosses zero, in [0, 1]. */
static double crossing(const double b[N + 1])
{
    int k = 0;
    while (k < N - 1 && (b[k] < 0.0) == (b[k + 1] < 0.0))
        k++;
    return (k + b[k] / (b[k] - b[k + 1])) / N;
}

static int is_noise(const double b[N + 1], double noise)
{
    for (int k = 0; k <= N; k++)
        if (fabs(b[k]) > noise)
            return 0;
    return 1;
}

/* Depth first, left to right. The number of splits is bounded: where all is
 * rounding (a continuum of solutions) there is nothing to isolate. */
int tsr_root_isolate(const double b[N + 1], double noise,
                     tsr_root root[TSR_MAX_ROOT])
{
    struct {
        double from, width;
        int depth;
        double b[N + 1];
    } stack[DEPTH + 2];
    int n_root = 0, n_split = 0, top = 0;
    memcpy(stack[0].b, b, sizeof stack[0].b);
    stack[0].from = 0.0, stack[0].width = 1.0, stack[0].depth = 0;
    while (top >= 0 && n_root < TSR_MAX_ROOT) {
        double *c = stack[top].b, from = stack[top].from;
        double width = stack[top].width;
        int n = sign_changes(c), depth = stack[top].depth;
        if (n == 0) {
            top--;
            continue;
        }
        if (n == 1 || depth == DEPTH || n_split == MAX_SPLIT ||
            is_noise(c, noise)) {
            tsr_root *r = &root[n_root++];
            r->from = from, r->to = from + width;
            r->single = n == 1;
            r->near = from + width * (n == 1 ? crossing(c) : 0.5);
            if (n == 1)
                memcpy(r->b, c, sizeof r->b);
            top--;
            continue;
        }
        n_split++;
        split(c, stack[top + 1].b);
        stack[top].from = from + 0.5 * width;
        stack[top].width = 0.5 * width, stack[top].depth = depth + 1;
        stack[top + 1].from = from, stack[top + 1].width = 0.5 * width;
        stack[top + 1].depth = depth + 1;
        top++;
    }
    return n_root;
}

static double value(const double b[N + 1], double t)
{
    double u = 1.0 - t, power = 1.0, sum = b[0];
    for (int k = 1; k <= N; k++) {
        power *= t;
        sum = sum * u + binomial[k] * b[k] * power;
    }
    return sum;
}

/* Secants within the bracket, the end that stays weighted down (Illinois;
 * Dowell & Jarratt 1971). */
double tsr_root_refine(const tsr_root *root)
{
    double low = 0.0, high = 1.0, f_low = root->b[0], f_high = root->b[N];
    int side = 0;
    for (int i = 0; i < 60 && high - low > 1e-14; i++) {
        double t = (f_low * high - f_high * low) / (f_low - f_high);
        if (!(t > low && t < high))
            t = 0.5 * (low + high);
        double f = value(root->b, t);
        if (f == 0.0) {
            low = high = t;
        } else if ((f < 0.0) == (f_low < 0.0)) {
            low = t, f_low = f;
            if (side == 1)
                f_high *= 0.5;
            side = 1;
        } else {
            high = t, f_high = f;
            if (side == -1)
                f_low *= 0.5;
            side = -1;
        }
    }
    return root->from + 0.5 * (low + high) * (root->to - root->from);
}
