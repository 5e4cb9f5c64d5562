/* What the programs of the peers share, in C so that mpicc can compile it: sizes, the clock, percentiles, the output.
 *
 * Method, the same for every peer: the ranks call the operation again and again; each rank times each call by itself,
 * without a barrier in between; the time of one iteration is the longest over the ranks; of those the median, the 99th
 * percentile and the smallest are reported. A warm-up comes first and decides the number of iterations: as many as fit
 * PEER_BUDGET_MS (250) of time, at least 5 and at most 20000. Buffers are plain memory of the process unless the
 * program says otherwise, out of place, the same in every iteration, and the result is checked before and after the
 * timing.
 */
#ifndef WEFT_BENCH_PEERS_PEER_H_
#define WEFT_BENCH_PEERS_PEER_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sizes {
  size_t begin_bytes;
  size_t end_bytes;
  size_t factor;
};

static inline size_t parse_size(const char* text) {
  char* end = NULL;
  size_t value = strtoull(text, &end, 10);
  if (*end == 'K') value <<= 10;
  if (*end == 'M') value <<= 20;
  if (*end == 'G') value <<= 30;
  return value;
}

/* Reads -b BEGIN -e END -f FACTOR, as Weft's bench does; other arguments are left to the program. */
static inline struct sizes parse_sizes(int argc, char** argv) {
  struct sizes sizes = {8, 64u << 20, 4};
  for (int i = 1; i + 1 < argc; ++i) {
    if (strcmp(argv[i], "-b") == 0) sizes.begin_bytes = parse_size(argv[i + 1]);
    if (strcmp(argv[i], "-e") == 0) sizes.end_bytes = parse_size(argv[i + 1]);
    if (strcmp(argv[i], "-f") == 0) sizes.factor = parse_size(argv[i + 1]);
  }
  if (sizes.begin_bytes < 4 || sizes.factor < 2) {
    fprintf(stderr, "-b must be 4 or more, -f 2 or more\n");
    exit(64);
  }
  return sizes;
}

static inline const char* text_setting(const char* name, const char* otherwise) {
  const char* text = getenv(name);
  return text != NULL && *text != '\0' ? text : otherwise;
}

static inline uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

enum { kWarmUps = 5, kLeastIterations = 5, kMostIterations = 20000 };

/* How many iterations fit the budget if one takes `each_ns`. */
static inline int iterations_for(uint64_t each_ns) {
  uint64_t budget_ns = strtoull(text_setting("PEER_BUDGET_MS", "250"), NULL, 10) * 1000000u;
  uint64_t fit = budget_ns / (each_ns > 0 ? each_ns : 1);
  return fit < kLeastIterations ? kLeastIterations : fit > kMostIterations ? kMostIterations : (int)fit;
}

/* Small whole numbers, so that a sum over ranks is exact in any order. */
static inline float input_value(size_t index, int rank) { return (float)((index * 7u + (size_t)rank * 3u) % 251u); }

static inline void fill_input(float* values, size_t count, int rank) {
  for (size_t i = 0; i < count; ++i) values[i] = input_value(i, rank);
}

/* How many of the sums over `ranks` ranks are wrong. */
static inline size_t count_wrong_sums(const float* sums, size_t count, int ranks) {
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += input_value(i, rank);
    wrong += sums[i] != sum;
  }
  return wrong;
}

static inline int compare_times(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

struct row {
  const char* peer;
  const char* version;
  const char* op;
  int ranks;
  const char* transport;
  size_t bytes;
};

/* Prints one JSON line; `times_ns` holds one time per iteration and is sorted here. */
static inline void print_row(struct row row, double* times_ns, int iterations, size_t wrong) {
  qsort(times_ns, (size_t)iterations, sizeof *times_ns, compare_times);
  const double median =
      iterations % 2 ? times_ns[iterations / 2] : (times_ns[iterations / 2 - 1] + times_ns[iterations / 2]) / 2;
  int last = (int)(0.99 * iterations + 0.999999) - 1; /* Nearest rank. */
  if (last >= iterations) last = iterations - 1;
  printf(
      "{\"peer\":\"%s\",\"version\":\"%s\",\"op\":\"%s\",\"ranks\":%d,\"transport\":\"%s\",\"bytes\":%zu,\"iters\":%d,"
      "\"median_us\":%.4f,\"p99_us\":%.4f,\"min_us\":%.4f,\"wrong\":%zu}\n",
      row.peer, row.version, row.op, row.ranks, row.transport, row.bytes, iterations, median / 1e3,
      times_ns[last] / 1e3, times_ns[0] / 1e3, wrong);
  fflush(stdout);
}

#endif /* WEFT_BENCH_PEERS_PEER_H_ */
