#include "runtime/launch/listener.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <stdexcept>
#include <string>

namespace tandem {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

/// A connection per process is more than many systems allow a process by default.
void allow_descriptors(std::uint32_t processes) {
  constexpr rlim_t others = 256;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= processes + others) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, processes + others));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

tcp::acceptor listen_as_rank_0(asio::io_context& io, const Launch& launch) {
  allow_descriptors(launch.size);
  error_code no_address;
  const auto named = asio::ip::make_address(launch.host == "localhost" ? "127.0.0.1" : launch.host, no_address);
  const auto at = [&](const tcp::endpoint& endpoint) {
    tcp::acceptor acceptor(io, endpoint.protocol());
    if (endpoint.protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false));
    acceptor.set_option(asio::socket_base::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen(asio::socket_base::max_listen_connections);
    return acceptor;
  };
  try {
    if (!no_address && named.is_loopback()) return at({named, launch.port});
    try {
      return at({tcp::v6(), launch.port});
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::address_in_use) throw;  // else this machine knows no IPv6
      return at({tcp::v4(), launch.port});
    }
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error("rank 0 cannot listen at port " + std::to_string(launch.port) + ": " + error.code().message() +
                             "; set TANDEM_PORT to a free port, the same for all processes");
  }
}

tcp::endpoint reached_at(const tcp::acceptor& acceptor) {
  const tcp::endpoint own = acceptor.local_endpoint();
  if (!own.address().is_unspecified()) return own;
  return {asio::ip::address_v4::loopback(), own.port()};
}

}  // namespace tandem
