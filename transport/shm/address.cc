#include "transport/shm/address.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "base/wire.h"

namespace weft::transport::shm {
namespace {

constexpr std::uint32_t kVersion = 1;

Result<std::array<std::byte, 16>> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::array<std::byte, 16> id{};
  std::size_t digits = 0;
  if (file >> text) {
    for (const char c : text) {
      if (c == '-') continue;
      const auto found = std::string_view("0123456789abcdef").find(c);
      if (found == std::string_view::npos || digits == 32) break;
      id[digits / 2] = static_cast<std::byte>((std::to_integer<unsigned>(id[digits / 2]) << 4) | found);
      ++digits;
    }
  }
  if (digits != 32) return Error{ErrorCode::unsupported, "read /proc/sys/kernel/random/boot_id", "Mount /proc"};
  return id;
}

}  // namespace

Result<ProcessPlace> own_place() {
  ProcessPlace place;
  WEFT_TRY_ASSIGN(place.boot_id, read_boot_id());
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) != 0) {
    return Error::from_errno(ErrorCode::unsupported, "stat /proc/self/ns/pid", errno, "Mount /proc");
  }
  place.pid_namespace = info.st_ino;
  place.pid = static_cast<std::uint32_t>(::getpid());
  WEFT_TRY_ASSIGN(place.start_time, start_time_of(place.pid));
  return place;
}

Result<std::uint64_t> start_time_of(std::uint32_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return Error::from_errno(ErrorCode::unsupported, "read " + path, ENOENT);
  // The second field is the program's name in parentheses and may hold anything; the start time is the 22nd.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return Error{ErrorCode::malformed, path + " has no program name"};
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  for (int index = 3; index < 22; ++index) rest >> field;
  std::uint64_t start_time = 0;
  if (!(rest >> start_time)) return Error{ErrorCode::malformed, path + " has no start time"};
  return start_time;
}

std::vector<std::byte> encode(const Address& address) {
  ByteWriter writer;
  writer.number(kVersion)
      .raw(address.place.boot_id)
      .number(address.place.pid_namespace)
      .number(address.place.pid)
      .number(address.place.start_time)
      .number(address.fd)
      .number(kHeaderSize)
      .raw(address.token);
  return std::move(writer).take();
}

Result<Address> decode_address(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Address address;
  const auto version = reader.number<std::uint32_t>();
  if (!reader.has_failed() && version != kVersion) {
    return Error{ErrorCode::unsupported, fmt::format("shm address of version {}, this is {}", version, kVersion),
                 "Run the same version of Weft on all ranks"};
  }
  const auto boot_id = reader.raw(address.place.boot_id.size());
  address.place.pid_namespace = reader.number<std::uint64_t>();
  address.place.pid = reader.number<std::uint32_t>();
  address.place.start_time = reader.number<std::uint64_t>();
  address.fd = reader.number<std::uint32_t>();
  const auto header_size = reader.number<std::uint64_t>();
  const auto token = reader.raw(address.token.size());
  WEFT_TRY(reader.finish("shm address"));
  if (header_size != kHeaderSize || address.fd > 0x7fffffff) {
    return Error{ErrorCode::malformed, "shm address with sizes that are not this version's"};
  }
  std::memcpy(address.place.boot_id.data(), boot_id.data(), boot_id.size());
  std::memcpy(address.token.data(), token.data(), token.size());
  return address;
}

PairProof prove(const SegmentToken& own, const SegmentToken& other) noexcept {
  PairProof proof;
  crypto_generichash(reinterpret_cast<unsigned char*>(proof.data()), proof.size(),
                     reinterpret_cast<const unsigned char*>(other.data()), other.size(),
                     reinterpret_cast<const unsigned char*>(own.data()), own.size());
  return proof;
}

}  // namespace weft::transport::shm
