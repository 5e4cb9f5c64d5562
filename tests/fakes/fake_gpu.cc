#include "tests/fakes/fake_gpu.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/host/kernels.h"

namespace weft::fakes {

using device::DataType;
using device::ReduceOp;
using device::Ticket;

namespace {

constexpr std::size_t kAlignmentBytes = 256;

std::uintptr_t address_of(const std::byte* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

FakeGpu::FakeGpu(Options options) : options_(options), random_(options.seed) {
  const int file = memfd_create("fake_gpu", MFD_CLOEXEC);
  WEFT_CHECK(file >= 0, "memfd_create works on every Linux that Weft supports");
  WEFT_CHECK(ftruncate(file, static_cast<off_t>(options_.memory_bytes)) == 0, "the fake GPU's memory fits");
  const auto map = [&](int protection) {
    void* const memory = mmap(nullptr, options_.memory_bytes, protection, MAP_SHARED, file, 0);
    WEFT_CHECK(memory != MAP_FAILED, "the fake GPU's memory can be mapped");
    return static_cast<std::byte*>(memory);
  };
  outside_ = map(PROT_NONE);
  inside_ = map(PROT_READ | PROT_WRITE);
  close(file);
}

FakeGpu::~FakeGpu() {
  munmap(outside_, options_.memory_bytes);
  munmap(inside_, options_.memory_bytes);
}

Ticket FakeGpu::copy(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept {
  Work work;
  work.kind = Work::Kind::copy;
  work.written = {address_of(destination), size_bytes};
  work.read_first = {address_of(source), size_bytes};
  return start(work);
}

Ticket FakeGpu::reduce(std::byte* destination, const std::byte* left, const std::byte* right, std::size_t count,
                       DataType type, ReduceOp op) noexcept {
  const std::size_t size_bytes = count * size_of(type);
  Work work;
  work.kind = Work::Kind::reduce;
  work.written = {address_of(destination), size_bytes};
  work.read_first = {address_of(left), size_bytes};
  work.read_second = {address_of(right), size_bytes};
  work.count = count;
  work.type = type;
  work.op = op;
  WEFT_CHECK((work.written.begin | work.read_first.begin | work.read_second.begin) % size_of(type) == 0,
             "pointers are aligned to the element");
  return start(work);
}

Ticket FakeGpu::finish_average(std::byte* values, std::size_t count, DataType type, std::uint32_t divisor) noexcept {
  Work work;
  work.kind = Work::Kind::divide;
  work.written = {address_of(values), count * size_of(type)};
  work.count = count;
  work.type = type;
  work.divisor = divisor;
  return start(work);
}

Ticket FakeGpu::start(Work work) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Range& range : {work.written, work.read_first, work.read_second}) (void)reach(range);
  WEFT_CHECK(!conflicts(work), "ranges of device work stay untouched until its ticket is done");
  work.ready_at_poll = num_polls_ + 1 + random_.below(options_.polls_max);
  const std::uint64_t ticket = next_ticket_++;
  in_flight_.emplace(ticket, work);
  return Ticket{ticket};
}

bool FakeGpu::is_done(Ticket ticket) noexcept {
  if (ticket == Ticket::done) return true;
  const std::lock_guard lock(mutex_);
  WEFT_CHECK(static_cast<std::uint64_t>(ticket) < next_ticket_, "a ticket comes from this device");
  ++num_polls_;
  const auto found = in_flight_.find(static_cast<std::uint64_t>(ticket));
  if (found == in_flight_.end()) return true;
  if (num_polls_ < found->second.ready_at_poll) return false;
  run(found->second);
  in_flight_.erase(found);
  return true;
}

void FakeGpu::run(const Work& work) const noexcept {
  std::byte* const destination = reach(work.written);
  switch (work.kind) {
    case Work::Kind::copy:
      if (work.written.size_bytes > 0) std::memmove(destination, reach(work.read_first), work.written.size_bytes);
      break;
    case Work::Kind::reduce:
      device::reduce_function(work.type, work.op)(destination, reach(work.read_first), reach(work.read_second),
                                                  work.count);
      break;
    case Work::Kind::divide: device::divide(destination, work.count, work.type, work.divisor); break;
  }
}

bool FakeGpu::is_in_arena(std::uintptr_t address) const noexcept {
  return address >= address_of(outside_) && address < address_of(outside_) + options_.memory_bytes;
}

std::optional<FakeGpu::Range> FakeGpu::allocation_of(std::uintptr_t address) const noexcept {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return std::nullopt;
  --next;
  if (address - next->first >= next->second) return std::nullopt;
  return Range{next->first, next->second};
}

std::byte* FakeGpu::reach(const Range& range) const noexcept {
  if (range.size_bytes == 0 || !is_in_arena(range.begin)) return reinterpret_cast<std::byte*>(range.begin);
  const std::optional<Range> allocation = allocation_of(range.begin);
  WEFT_CHECK(allocation && range.begin + range.size_bytes <= allocation->begin + allocation->size_bytes,
             "device work stays inside one live allocation");
  return inside_ + (range.begin - address_of(outside_));
}

bool FakeGpu::conflicts(const Work& work) const noexcept {
  const auto overlap = [](const Range& a, const Range& b) {
    return a.size_bytes > 0 && b.size_bytes > 0 && a.begin < b.begin + b.size_bytes && b.begin < a.begin + a.size_bytes;
  };
  return std::any_of(in_flight_.begin(), in_flight_.end(), [&](const auto& entry) {
    const Work& other = entry.second;
    return overlap(work.written, other.written) || overlap(work.written, other.read_first) ||
           overlap(work.written, other.read_second) || overlap(work.read_first, other.written) ||
           overlap(work.read_second, other.written);
  });
}

Result<std::byte*> FakeGpu::allocate(std::size_t size_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  // First fit, with a gap after each allocation so that running over its end does not land in the next one.
  const std::size_t whole =
      (std::max(size_bytes, std::size_t{1}) + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  std::uintptr_t begin = address_of(outside_);
  for (const auto& [other, other_size] : allocations_) {
    if (whole <= other - std::min(other, begin) && whole + kAlignmentBytes <= other - begin) break;
    begin = (other + other_size + 2 * kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  }
  const std::uintptr_t end = address_of(outside_) + options_.memory_bytes;
  if (size_bytes > options_.memory_bytes || begin + whole > end) {
    return Error{ErrorCode::limit_exceeded, "allocate " + std::to_string(size_bytes) + " bytes of the fake GPU"};
  }
  allocations_.emplace(begin, std::max(size_bytes, std::size_t{1}));
  std::memset(inside_ + (begin - address_of(outside_)), 0, whole);
  return reinterpret_cast<std::byte*>(begin);
}

void FakeGpu::release(std::byte* memory) noexcept {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address_of(memory));
  WEFT_CHECK(found != allocations_.end(), "what is released was allocated here, once");
  Work touching;
  touching.written = {found->first, found->second};
  WEFT_CHECK(!conflicts(touching), "memory is released after the work on it is done");
  allocations_.erase(found);
}

bool FakeGpu::owns(const std::byte* memory) const noexcept {
  if (!is_in_arena(address_of(memory))) return false;
  const std::lock_guard lock(mutex_);
  return allocation_of(address_of(memory)).has_value();
}

void FakeGpu::wait(Ticket ticket) noexcept {
  while (!is_done(ticket)) {
  }
}

void FakeGpu::upload(std::byte* to_device, const void* from_host, std::size_t size_bytes) noexcept {
  wait(copy(to_device, static_cast<const std::byte*>(from_host), size_bytes));
}

void FakeGpu::download(void* to_host, const std::byte* from_device, std::size_t size_bytes) noexcept {
  wait(copy(static_cast<std::byte*>(to_host), from_device, size_bytes));
}

std::size_t FakeGpu::num_in_flight() const noexcept {
  const std::lock_guard lock(mutex_);
  return in_flight_.size();
}

std::size_t FakeGpu::num_allocations() const noexcept {
  const std::lock_guard lock(mutex_);
  return allocations_.size();
}

}  // namespace weft::fakes
