/* MPI_Send and MPI_Recv between ranks 0 and 1: "ping_pong" is half a round trip; "stream" is the time per message when
 * kWindow messages are under way and the window's receipt is acknowledged. Usage and method as mpi_all_reduce.c. */
#include <mpi.h>

#include "peer.h"

#if defined(OPEN_MPI)
#define PEER "openmpi"
#else
#define PEER "mpich"
#endif

enum { kWindow = 16, kTag = 1 };

static const char* version(void) {
  static char text[32];
#if defined(OPEN_MPI)
  snprintf(text, sizeof text, "%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  snprintf(text, sizeof text, "%s", MPICH_VERSION);
#endif
  return text;
}

/* One round trip; its half is the time of a message. */
static double ping_pong(char* out, char* in, int bytes, int rank) {
  const uint64_t from = now_ns();
  if (rank == 0) {
    MPI_Send(out, bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  }
  return (double)(now_ns() - from) / 2;
}

/* One window from rank 0 to rank 1. All messages land in the same buffer, as they would in a benchmark of MPI's own. */
static double stream(char* out, char* in, int bytes, int rank) {
  MPI_Request requests[kWindow];
  MPI_Status statuses[kWindow];
  const uint64_t from = now_ns();
  for (int i = 0; i < kWindow; ++i) {
    if (rank == 0) MPI_Isend(out, bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests[i]);
    if (rank == 1) MPI_Irecv(in, bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(kWindow, requests, statuses);
  char receipt = 0;
  if (rank == 1) MPI_Send(&receipt, 1, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&receipt, 1, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return (double)(now_ns() - from) / kWindow;
}

static void measure(const char* op, double (*once)(char*, char*, int, int), int calls, size_t bytes, int rank) {
  char* out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  char* in = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  memset(out, 'w', bytes);
  memset(in, 0, bytes);
  double each = 0;
  for (int i = 0; i < kWarmUps; ++i) each = once(out, in, (int)bytes, rank);
  int iterations = iterations_for((uint64_t)(each * calls));
  MPI_Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
  double* times = malloc((size_t)iterations * sizeof *times);
  memset(in, 0, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < iterations; ++i) times[i] = once(out, in, (int)bytes, rank);
  unsigned long long mine = 0, all = 0;
  const int receives = calls == 2 || rank == 1;
  for (size_t i = 0; receives && i < bytes; ++i) mine += in[i] != 'w';
  MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const struct row row = {PEER, version(), op, 2, text_setting("PEER_TRANSPORT", "tcp"), bytes};
    print_row(row, times, iterations, all);
  }
  free(times);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "mpi_p2p wants 2 ranks, there are %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  const struct sizes sizes = parse_sizes(argc, argv);
  for (size_t bytes = sizes.begin_bytes; bytes <= sizes.end_bytes; bytes *= sizes.factor) {
    measure("ping_pong", ping_pong, 2, bytes, rank);
    measure("stream", stream, kWindow, bytes, rank);
  }
  MPI_Finalize();
  return 0;
}
