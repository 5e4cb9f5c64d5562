/* A user's program in C: a job of one rank, one sum. */
#include <stdio.h>
#include <weft/weft.h>

int main(void) {
  weft_communicator_t* communicator = NULL;
  const float send[3] = {1, 2, 3};
  float receive[3] = {0, 0, 0};
  if (weft_version() != WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH) {
    fprintf(stderr, "header and library have different versions\n");
    return 1;
  }
  if (weft_create(&communicator) != WEFT_SUCCESS ||
      weft_all_reduce(communicator, send, receive, 3, WEFT_F32, WEFT_SUM) != WEFT_SUCCESS) {
    fprintf(stderr, "%s\n", weft_last_error());
    return 1;
  }
  if (receive[0] != 1 || receive[1] != 2 || receive[2] != 3 || weft_size(communicator) != 1) {
    fprintf(stderr, "wrong result\n");
    return 1;
  }
  return weft_destroy(communicator) == WEFT_SUCCESS ? 0 : 1;
}
