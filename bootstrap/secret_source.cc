#include "bootstrap/secret_source.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace weft::bootstrap {
namespace {

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<Secret> read_secret_file(const std::string& path) {
  const std::string what = fmt::format("WEFT_SECRET_FILE {}", in_quotes(path, 256));
  // Not blocking: a named pipe in the file's place must not hang the job.
  const OpenFile file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd() < 0) {
    const int failure = errno;
    return Error::from_errno(failure == ENOENT ? ErrorCode::not_found : ErrorCode::system, what, failure);
  }
  // Asked of the open file, so that nobody can exchange it between the check and the reading.
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) return Error::from_errno(ErrorCode::system, what, errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::malformed, what + " is not an ordinary file"};
  if (status.st_uid != ::geteuid()) {
    return Error{ErrorCode::unauthenticated,
                 fmt::format("{} belongs to user {}, not to this process's user {}", what, status.st_uid, ::geteuid())};
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{ErrorCode::unauthenticated,
                 fmt::format("{} is open to others (mode {:04o})", what, status.st_mode & 07777), "chmod 0600 it"};
  }
  std::array<char, 256> text{};  // 64 digits and any reasonable number of blanks.
  const ssize_t size = ::read(file.fd(), text.data(), text.size());
  if (size < 0) return Error::from_errno(ErrorCode::system, what, errno);
  auto secret = Secret::from_hex(trimmed({text.data(), static_cast<std::size_t>(size)}));
  sodium_memzero(text.data(), text.size());
  if (!secret) return secret.error().within(what);
  return secret;
}

Result<Secret> find_secret(const Settings& settings, const HostPort& address) {
  if (settings.is_set(Setting::secret)) {
    auto secret = Secret::from_hex(settings.text(Setting::secret));
    if (!secret) return secret.error().within("WEFT_SECRET");
    return secret;
  }
  if (settings.is_set(Setting::secret_file)) return read_secret_file(settings.text(Setting::secret_file));
  if (!is_loopback_host(address.host)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("there is no secret for the job at {}, which other machines can reach",
                             format_host_port(address.host, address.port)),
                 "Set WEFT_SECRET (`openssl rand -hex 32` makes one) or WEFT_SECRET_FILE on every rank"};
  }
  log::info("bootstrap: no WEFT_SECRET: only loopback is used, with a secret derived from address, user and job name");
  return Secret{}.derive(fmt::format("loopback job: address {}, user {}, job {}",
                                     format_host_port(address.host, address.port), ::geteuid(),
                                     settings.text(Setting::job)));
}

}  // namespace weft::bootstrap
