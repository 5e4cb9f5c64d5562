#include "collectives/rank_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/wire.h"

namespace weft::collectives {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string memory_domain() {
  struct stat ipc {};
  struct stat shm {};
  if (stat("/proc/self/ns/ipc", &ipc) != 0) ipc.st_ino = 0;
  if (stat("/dev/shm", &shm) != 0) shm.st_dev = 0;
  return fmt::format("ipc {}, /dev/shm on device {}", ipc.st_ino, shm.st_dev);
}

}  // namespace

RankRecord own_record(std::string host_id) {
  RankRecord own;
  own.host = host_name();
  own.pid = static_cast<std::uint32_t>(getpid());
  own.boot_id = boot_id();
  own.memory_domain = memory_domain();
  own.host_id = std::move(host_id);
  const CoreSet cores = CoreSet::of_this_thread();
  own.cores.assign(cores.words().begin(), cores.words().end());
  return own;
}

std::vector<std::byte> encode(const Introduction& introduction) {
  const RankRecord& record = introduction.record;
  ByteWriter writer;
  writer.number(std::uint8_t{1}).text(record.host).number(record.pid).text(record.boot_id);
  writer.text(record.memory_domain).text(record.host_id);
  writer.text(introduction.common).number(static_cast<std::uint32_t>(record.cores.size()));
  for (const std::uint64_t word : record.cores) writer.number(word);
  return std::move(writer).take();
}

Result<Introduction> decode_introduction(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Introduction result;
  if (reader.number<std::uint8_t>() != 1) return Error{ErrorCode::unsupported, "a rank runs another version of Weft"};
  result.record.host = reader.text();
  result.record.pid = reader.number<std::uint32_t>();
  result.record.boot_id = reader.text();
  result.record.memory_domain = reader.text();
  result.record.host_id = reader.text();
  result.common = reader.text();
  constexpr std::uint32_t kWordsMax = 1024;  // 65536 cores.
  const auto words = reader.number<std::uint32_t>();
  if (words > kWordsMax) return Error{ErrorCode::malformed, "a rank's introduction names too many cores"};
  for (std::uint32_t i = 0; i < words; ++i) result.record.cores.push_back(reader.number<std::uint64_t>());
  WEFT_TRY(reader.finish("a rank's introduction"));
  return result;
}

}  // namespace weft::collectives
