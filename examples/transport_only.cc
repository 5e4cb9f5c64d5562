// Weft as a transport, without collectives: rank 0 writes blocks into rank 1's memory, which is told when each is
// there. `weft run -n 2 -- build/release/examples/transport_only`
#include <cstdio>
#include <cstring>
#include <vector>

#include <weft/transport.hpp>

namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kBlocks = 8;

int failed(const char* what, const weft::Failure& failure) {
  std::fprintf(stderr, "%s: %s\n", what, failure.text.c_str());
  return 1;
}

}  // namespace

int main() {
  auto communicator = weft::Communicator::create();
  if (!communicator) return failed("create", communicator.failure());
  if (communicator->size() != 2) return std::fprintf(stderr, "this example takes two ranks: weft run -n 2\n"), 2;

  auto memory = weft::Memory<std::uint8_t>::allocate(kBlock * kBlocks);
  if (!memory) return failed("allocate", memory.failure());
  auto window = weft::Window::open(*communicator, std::as_writable_bytes(memory->span()));
  if (!window) return failed("open", window.failure());

  if (communicator->rank() == 0) {
    std::vector<weft::Request> writes;
    std::vector<std::vector<std::uint8_t>> sources;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      sources.emplace_back(kBlock, static_cast<std::uint8_t>(block + 1));
      auto write = window->write_with_notice(std::as_bytes(std::span(sources.back())), 1, block * kBlock);
      if (!write) return failed("write", write.failure());
      writes.push_back(*write);
    }
    for (weft::Request& write : writes) {
      if (auto done = write.wait(); !done) return failed("wait", done.failure());
    }
    std::printf("rank 0 wrote %zu blocks of %zu bytes\n", kBlocks, kBlock);
  } else {
    if (auto noticed = window->wait_notices(0, kBlocks); !noticed) return failed("notices", noticed.failure());
    for (std::size_t i = 0; i < kBlock * kBlocks; ++i) {
      if ((*memory)[i] != i / kBlock + 1) return std::fprintf(stderr, "rank 1: byte %zu is wrong\n", i), 1;
    }
    std::printf("rank 1 noticed %zu blocks, every byte is right\n", kBlocks);
  }
  if (auto closed = window->close(); !closed) return failed("close", closed.failure());
  return 0;
}
