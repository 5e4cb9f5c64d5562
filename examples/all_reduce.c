/* The main job of data-parallel training: every rank has gradients, every rank needs their mean.
 * `weft run -n 4 -- build/release/examples/all_reduce` */
#include <stdio.h>
#include <weft/weft.h>

enum { kCount = 1 << 20 };

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weft_last_error());
  return 1;
}

int main(void) {
  weft_communicator_t* communicator;
  if (weft_create(&communicator) != WEFT_SUCCESS) return failed("weft_create");
  const uint32_t rank = weft_rank(communicator);
  const uint32_t size = weft_size(communicator);

  /* Memory from Weft is used in place by all transports; any other memory works too. */
  void* memory;
  if (weft_memory_allocate(kCount * sizeof(float), &memory) != WEFT_SUCCESS) return failed("weft_memory_allocate");
  float* gradients = memory;
  for (int i = 0; i < kCount; ++i) gradients[i] = (float)(rank + 1);

  /* Start it, compute something else meanwhile, then wait. */
  weft_request_t request;
  if (weft_start_all_reduce(communicator, gradients, gradients, kCount, WEFT_F32, WEFT_AVG, &request) != WEFT_SUCCESS) {
    return failed("weft_start_all_reduce");
  }
  if (weft_wait(&request, 0) != WEFT_SUCCESS) return failed("weft_wait");

  const float wanted = (float)(size + 1) / 2;
  for (int i = 0; i < kCount; ++i) {
    if (gradients[i] != wanted) {
      fprintf(stderr, "rank %u: element %d is %g, not %g\n", rank, i, gradients[i], wanted);
      return 1;
    }
  }
  printf("rank %u of %u: the mean of %d elements is %g everywhere\n", rank, size, kCount, gradients[0]);
  weft_memory_free(memory);
  if (weft_destroy(communicator) != WEFT_SUCCESS) return failed("weft_destroy");
  return 0;
}
