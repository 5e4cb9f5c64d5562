#include "bootstrap/endpoints.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace weft::bootstrap {

Result<std::vector<boost::asio::ip::tcp::endpoint>> resolve(const HostPort& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* raw_list = nullptr;
  const int answer = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &raw_list);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{raw_list, &freeaddrinfo};
  if (answer != 0) {
    return Error{ErrorCode::not_found, fmt::format("host \"{}\": {}", address.host, gai_strerror(answer)),
                 "Use a name that every rank resolves, or a numeric address"};
  }
  std::vector<boost::asio::ip::tcp::endpoint> endpoints;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    boost::asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    endpoint.resize(entry->ai_addrlen);
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    if (std::ranges::find(endpoints, endpoint) == endpoints.end()) endpoints.push_back(endpoint);
  }
  std::stable_partition(endpoints.begin(), endpoints.end(),
                        [](const auto& endpoint) { return endpoint.address().is_v4(); });
  return endpoints;
}

}  // namespace weft::bootstrap
