/* MPI_Allreduce, for mpicc of Open MPI and of MPICH. Usage: mpirun -n RANKS mpi_all_reduce -b 8 -e 64M -f 4
 * PEER_TRANSPORT names what the launcher chose, for the output. Method: peer.h. */
#include <mpi.h>

#include "peer.h"

#if defined(OPEN_MPI)
#define PEER "openmpi"
#elif defined(MPICH_VERSION)
#define PEER "mpich"
#else
#define PEER "mpi"
#endif

static const char* version(void) {
  static char text[32];
#if defined(OPEN_MPI)
  snprintf(text, sizeof text, "%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  snprintf(text, sizeof text, "%s", MPICH_VERSION);
#endif
  return text;
}

static void measure(size_t bytes, int rank, int ranks) {
  const size_t count = bytes / sizeof(float);
  float* input = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  float* output = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  fill_input(input, count, rank);
  memset(output, 0, bytes);

  uint64_t started = 0;
  for (int i = 0; i < 2 * kWarmUps; ++i) {
    if (i == kWarmUps) started = now_ns();
    MPI_Allreduce(input, output, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  int iterations = iterations_for((now_ns() - started) / kWarmUps);
  MPI_Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
  size_t wrong = count_wrong_sums(output, count, ranks);
  memset(output, 0, bytes);

  double* times = malloc((size_t)iterations * sizeof *times);
  double* longest = malloc((size_t)iterations * sizeof *longest);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < iterations; ++i) {
    const uint64_t from = now_ns();
    MPI_Allreduce(input, output, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times[i] = (double)(now_ns() - from);
  }
  wrong += count_wrong_sums(output, count, ranks);
  MPI_Reduce(times, longest, iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  unsigned long long mine = wrong, all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const struct row row = {PEER, version(), "all_reduce", ranks, text_setting("PEER_TRANSPORT", "shm"), bytes};
    print_row(row, longest, iterations, all);
  }
  free(longest);
  free(times);
  free(output);
  free(input);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const struct sizes sizes = parse_sizes(argc, argv);
  for (size_t bytes = sizes.begin_bytes; bytes <= sizes.end_bytes; bytes *= sizes.factor) measure(bytes, rank, ranks);
  MPI_Finalize();
  return 0;
}
