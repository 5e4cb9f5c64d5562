/* Two or more ranks meet and say hello: `weft run -n 2 -- build/release/examples/hello`. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weft_last_error());
  return 1;
}

int main(void) {
  weft_communicator_t* communicator;
  if (weft_create(&communicator) != WEFT_SUCCESS) return failed("weft_create");
  const uint32_t rank = weft_rank(communicator);
  const uint32_t size = weft_size(communicator);

  /* Everyone hands a greeting to the next rank around the ring. */
  char greeting[64] = {0};
  char received[64] = {0};
  snprintf(greeting, sizeof greeting, "hello from rank %u", rank);
  weft_group_begin();
  weft_send(communicator, greeting, sizeof greeting, WEFT_U8, (rank + 1) % size);
  weft_receive(communicator, received, sizeof received, WEFT_U8, (rank + size - 1) % size);
  if (weft_group_end() != WEFT_SUCCESS) return failed("hello");

  printf("rank %u of %u received: %s\n", rank, size, received);
  if (weft_destroy(communicator) != WEFT_SUCCESS) return failed("weft_destroy");
  return 0;
}
