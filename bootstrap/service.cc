#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/ip/address.hpp>

#include "base/log.h"
#include "bootstrap/address.h"
#include "bootstrap/endpoints.h"
#include "bootstrap/port_owner.h"
#include "bootstrap/running_service.h"

namespace weft::bootstrap {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

bool is_numeric(const std::string& host) {
  boost::system::error_code failure;
  asio::ip::make_address(host, failure);
  return !failure;
}

/// A machine's own name often stands for 127.0.1.1 in its /etc/hosts, while the others know it by its real address. A
/// service that is to be found under that name listens on all addresses; the handshake guards it on each of them.
std::vector<tcp::endpoint> endpoints_to_listen_on(const HostPort& wanted, std::vector<tcp::endpoint> resolved) {
  if (is_loopback_host(wanted.host) || is_numeric(wanted.host)) return resolved;
  std::stable_partition(resolved.begin(), resolved.end(),
                        [](const tcp::endpoint& endpoint) { return !endpoint.address().is_loopback(); });
  for (tcp::endpoint& endpoint : resolved) {
    if (endpoint.address().is_loopback()) {
      endpoint = tcp::endpoint(endpoint.address().is_v4() ? tcp::v4() : tcp::v6(), endpoint.port());
    }
  }
  return resolved;
}

boost::system::error_code listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  boost::system::error_code failure;
  acceptor.open(endpoint.protocol(), failure);
  // A job that is started again must not wait for the connections of the killed one to time out.
  if (!failure) acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure) acceptor.bind(endpoint, failure);
  if (!failure) acceptor.listen(tcp::acceptor::max_listen_connections, failure);
  if (failure) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }
  return failure;
}

Error address_in_use(const HostPort& wanted) {
  const std::string owner = find_port_owner(wanted.port);
  return Error{ErrorCode::address_in_use,
               fmt::format("port {} of {} is taken by {}", wanted.port, wanted.host,
                           owner.empty() ? "a process that is not visible from here" : owner),
               "End that process or choose another port in WEFT_ADDRESS; port 0 lets the kernel choose"};
}

Result<tcp::acceptor> open_acceptor(asio::io_context& context, const HostPort& wanted) {
  WEFT_TRY_ASSIGN(auto resolved, resolve(wanted));
  tcp::acceptor acceptor{context};
  boost::system::error_code first_failure;
  for (const tcp::endpoint& endpoint : endpoints_to_listen_on(wanted, std::move(resolved))) {
    const auto failure = listen_on(acceptor, endpoint);
    if (!failure) return acceptor;
    if (failure == asio::error::address_in_use) return address_in_use(wanted);
    if (!first_failure) first_failure = failure;
  }
  if (first_failure.value() == EADDRNOTAVAIL) {
    return Error{ErrorCode::not_found, fmt::format("address {} is not on this machine", wanted.host),
                 "Rank 0 runs the service: give the address of its machine in WEFT_ADDRESS (MASTER_ADDR)"};
  }
  return Error::from_errno(ErrorCode::system,
                           fmt::format("listening on {}", format_host_port(wanted.host, wanted.port)),
                           first_failure.value());
}

/// One descriptor for each rank and each stranger, and some for the rest of the process.
Status ensure_descriptors(std::uint32_t num_ranks, std::size_t num_strangers) {
  constexpr rlim_t kRest = 128;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return Error::from_errno(ErrorCode::system, "getrlimit", errno);
  const rlim_t least = num_ranks + kRest;
  const rlim_t good = 2 * rlim_t{num_ranks} + num_strangers + kRest;
  if (limit.rlim_cur >= good) return {};
  if (limit.rlim_max < least) {
    return Error{ErrorCode::limit_exceeded,
                 fmt::format("a job of {} ranks needs {} open files in the process of its service, {} are allowed",
                             num_ranks, least, limit.rlim_max),
                 "Raise the hard limit (ulimit -Hn) where the service runs"};
  }
  limit.rlim_cur = std::min(good, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return Error::from_errno(ErrorCode::system, "setrlimit", errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<Service>> start_service(Service::Options options, StrangerLimits limits) {
  if (options.size == 0) return Error{ErrorCode::invalid_argument, "a job has at least one rank"};
  WEFT_TRY_ASSIGN(const HostPort wanted, parse_host_port(options.listen_address));
  WEFT_TRY(ensure_descriptors(options.size, limits.num_max));
  auto context = std::make_unique<asio::io_context>(1);
  WEFT_TRY_ASSIGN(auto acceptor, open_acceptor(*context, wanted));
  boost::system::error_code failure;
  const tcp::endpoint local = acceptor.local_endpoint(failure);
  if (failure) return Error::from_errno(ErrorCode::system, "getsockname", failure.value());
  std::string address = format_host_port(wanted.host, local.port());
  log::info("bootstrap: the service of {} ranks listens at {}", options.size, address);
  return std::unique_ptr<Service>(std::make_unique<RunningService>(std::move(options), std::move(address),
                                                                   std::move(context), std::move(acceptor), limits));
}

Result<std::unique_ptr<Service>> Service::start(Options options) {
  return start_service(std::move(options), StrangerLimits{});
}

}  // namespace weft::bootstrap
