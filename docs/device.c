/* A device: it reads a bundle in the flat form, quantizes and dequantizes in plain C, and writes its answers.
 *
 *     device BUNDLE ANSWERS        both are folders, and ANSWERS is there
 *
 * docs/protocol.md has the grammar of calls.txt and answers.txt. Numbers are little-endian, as this machine has to be.
 * Compiled with -DBUG_ROUND_AWAY, -DBUG_RECIPROCAL, -DBUG_ZERO_POINT_FIRST or -DBUG_GROUP it has a bug to be found.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, LONGEST = 256 };

typedef struct { /* an array as it lies in calls.bin: strides and offset count elements */
    char dtype[LONGEST];
    int rank;
    long shape[RANKS], strides[RANKS];
    const unsigned char *memory;
    long offset;
} Array;

static unsigned char *data;
static FILE *calls, *answers, *results;
static long written;

static void word(char *into) {
    if (fscanf(calls, "%255s", into) != 1) {
        fprintf(stderr, "device: calls.txt is cut short\n");
        exit(2);
    }
}

static long number(void) {
    char text[LONGEST];
    word(text);
    return strtol(text, NULL, 10);
}

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void array(Array *a) { /* strided DTYPE RANK shape... strides... BYTE ELEMENTS OFFSET */
    word(a->dtype);
    a->rank = (int)number();
    if (a->rank > RANKS) exit(2);
    for (int d = 0; d < a->rank; d++) a->shape[d] = number();
    for (int d = 0; d < a->rank; d++) a->strides[d] = number();
    a->memory = data + number();
    number(); /* how many elements the memory has */
    a->offset = number();
}

static double element(const Array *a, const long *index, const long *block) { /* of a parameter: that of the block */
    long at = a->offset;
    for (int d = 0; d < a->rank; d++) at += (block ? index[d] / block[d] : index[d]) * a->strides[d];
    const unsigned char *p = a->memory;
    if (is(a->dtype, "float32")) return ((const float *)(const void *)p)[at];
    if (is(a->dtype, "int8")) return ((const int8_t *)(const void *)p)[at];
    if (is(a->dtype, "uint8")) return p[at];
    if (is(a->dtype, "int16")) return ((const int16_t *)(const void *)p)[at];
    if (is(a->dtype, "uint16")) return ((const uint16_t *)(const void *)p)[at];
    if (is(a->dtype, "int32")) return ((const int32_t *)(const void *)p)[at];
    fprintf(stderr, "device: no arrays of %s\n", a->dtype);
    exit(2);
}

static int fits(const Array *parameter, const Array *x, const long *block) { /* one per tensor, or one per block */
    if (!block) return parameter->rank == 0;
    if (parameter->rank != x->rank) return 0;
    for (int d = 0; d < x->rank; d++)
        if (parameter->shape[d] != (x->shape[d] + block[d] - 1) / block[d]) return 0;
    return 1;
}

static float code(float x, float scale, float zero_point, float qmin, float qmax) {
#ifdef BUG_RECIPROCAL
    float quotient = x * (1.0f / scale);
#else
    float quotient = x / scale;
#endif
#ifdef BUG_ROUND_AWAY
    float sum = roundf(quotient) + zero_point;
#elif defined BUG_ZERO_POINT_FIRST
    float sum = rintf(quotient + zero_point);
#else
    float sum = rintf(quotient) + zero_point; /* exact, but where it is far from any code of the grid */
#endif
    return sum >= qmax ? qmax : sum > qmin ? sum : qmin;
}

static void put(double value, const char *dtype) {
    float real = (float)value;
    int64_t whole = isfinite(value) ? (int64_t)value : 0; /* its first bytes are those of any narrower integer */
    size_t size = is(dtype, "float32") ? 4 : strstr(dtype, "16") ? 2 : 1;
    fwrite(is(dtype, "float32") ? (void *)&real : (void *)&whole, 1, size, results);
    written += (long)size;
}

static void answer(long call, int dequantizes, const Array *x, const Array *scale, const Array *zero,
                   const long *block, long qmin, long qmax) {
    int integers = !is(x->dtype, "float32");
    if (qmin > qmax || integers != dequantizes || !fits(scale, x, block) || !fits(zero, x, block)) {
        fprintf(answers, "answer %ld raised 1 \"ValueError\" \"bad%%20arguments\"\n", call);
        return;
    }
    const char *dtype = dequantizes ? "float32" : qmin < 0 ? (qmin >= -128 && qmax < 128 ? "int8" : "int16")
                                                           : (qmax < 256 ? "uint8" : "uint16");
    fprintf(answers, "answer %ld returned array %s %d", call, dtype, x->rank);
    long index[RANKS] = {0}, size = 1;
    for (int d = 0; d < x->rank; d++) {
        fprintf(answers, " %ld", x->shape[d]);
        size *= x->shape[d];
    }
    fprintf(answers, " %ld\n", written);
    for (long i = 0; i < size; i++) {
        long block_index[RANKS];
        for (int d = 0; d < x->rank; d++) block_index[d] = index[d];
#ifdef BUG_GROUP
        if (block && x->rank > 0) block_index[x->rank - 1] = 0; /* every group has the scale of its row's first */
#endif
        double s = element(scale, block_index, block), z = element(zero, block_index, block);
        double v = element(x, index, NULL);
        put(dequantizes ? (float)(v - z) * (float)s : code((float)v, (float)s, (float)z, (float)qmin, (float)qmax),
            dtype);
        for (int d = x->rank - 1; d >= 0 && ++index[d] == x->shape[d]; d--) index[d] = 0;
    }
}

static void ask(void) { /* call NUMBER FORMULA THREADS MODE REPEATS ARGUMENTS, then a line per argument */
    char formula[LONGEST], name[LONGEST], kind[LONGEST];
    Array x = {0}, scale = {0}, zero = {0};
    long block[RANKS] = {0}, blocked = 0, qmin = 0, qmax = 0, call = number();
    word(formula), word(name), word(name), number();
    for (long count = number(); count > 0; count--) {
        word(name), word(kind);
        if (is(kind, "strided")) array(is(name, "scale") ? &scale : is(name, "zero_point") ? &zero : &x);
        else if (is(kind, "int")) *(is(name, "qmin") ? &qmin : &qmax) = number();
        else if (is(kind, "dtype")) word(kind); /* float32 is all that there is */
        else if (is(kind, "tuple") || is(kind, "list")) {
            blocked = number();
            for (long d = 0; d < blocked && d < RANKS; d++) word(kind), block[d] = number(); /* int N */
        } else if (!is(kind, "none")) exit(2);
    }
    answer(call, strstr(formula, ":dequantize") != NULL, &x, &scale, &zero, blocked ? block : NULL, qmin, qmax);
}

static FILE *file(const char *folder, const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *found = fopen(path, mode);
    if (!found) perror(path), exit(2);
    return found;
}

int main(int count, char **words) {
    if (count != 3) return fprintf(stderr, "device BUNDLE ANSWERS\n"), 2;
    char text[LONGEST] = "", id[LONGEST] = "";
    FILE *binary = file(words[1], "calls.bin", "rb"), *named = file(words[1], "bundle.id", "r");
    calls = file(words[1], "calls.txt", "r");
    answers = file(words[2], "answers.txt", "w");
    results = file(words[2], "answers.bin", "wb");
    fseek(binary, 0, SEEK_END);
    size_t size = (size_t)ftell(binary);
    rewind(binary);
    data = malloc(size + 1);
    if (!data || fread(data, 1, size, binary) != size || fscanf(named, "%255s", id) != 1) return 2;
    word(text);
    if (!is(text, "halfeven-calls") || number() != 1) return fprintf(stderr, "device: another version\n"), 2;
    fprintf(answers, "halfeven-answers 1\nbundle %s\n", id);
    for (word(text); is(text, "call"); word(text)) ask();
    if (!is(text, "end")) return 2;
    fprintf(answers, "end %ld\n", number());
    return fclose(answers) || fclose(results) ? 2 : 0;
}
