#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "runtime/launch/launcher.h"

namespace tandem {

/// On the loopback alone when that is where rank 0 is said to be; else on all of the machine's addresses, whatever its name means
/// to itself. Lets the process have a descriptor for each of the others. Throws std::runtime_error when the port is not to be
/// had.
boost::asio::ip::tcp::acceptor listen_as_rank_0(boost::asio::io_context& io, const Launch& launch);

/// Returns the endpoint at which this process itself reaches the acceptor.
boost::asio::ip::tcp::endpoint reached_at(const boost::asio::ip::tcp::acceptor& acceptor);

}  // namespace tandem
