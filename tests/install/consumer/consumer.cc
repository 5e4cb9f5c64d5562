// A user's program in C++: a job of one rank, one sum. Includes every public header.
#include <weft/weft.h>

#if __has_include(<weft/weft.hpp>)
#include <weft/weft.hpp>
#endif

#include <array>
#include <cstdio>

int main() {
  weft_communicator_t* communicator = nullptr;
  const std::array<double, 2> send{1.5, -2.5};
  std::array<double, 2> receive{};
  if (weft_create(&communicator) != WEFT_SUCCESS ||
      weft_all_reduce(communicator, send.data(), receive.data(), send.size(), WEFT_F64, WEFT_SUM) != WEFT_SUCCESS) {
    std::fprintf(stderr, "%s\n", weft_last_error());
    return 1;
  }
  const bool right = receive == send && weft_rank(communicator) == 0;
  return weft_destroy(communicator) == WEFT_SUCCESS && right ? 0 : 1;
}
