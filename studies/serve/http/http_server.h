#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::studies {

/// What a browser asks.
struct HttpRequest {
  const std::string& method;
  const std::string& path;
  const std::string& body;                                   ///< empty while it is not let in
  std::string part = {};                                     ///< of the path: what the group of the route's pattern holds
  std::function<std::string(const char* name)> header = {};  ///< empty where it has none of that name
  std::function<std::string(const char* name)> parameter = {};
};

struct HttpResponse {
  int status = 200;
  const char* type = "";
  std::string body = {};
  /// In place of `body`: asked for piece after piece until there is none, or nobody listens any more.
  std::function<std::optional<std::string>()> next_piece = {};
};

struct HttpRoute {
  const char* method = "GET";  ///< or POST
  const char* pattern = "/";   ///< of the whole path: a regular expression, with one group at most
  std::function<HttpResponse(const HttpRequest&)> answer;
};

/// What a server serves. Its functions are called from many threads at a time.
struct HttpService {
  std::function<std::optional<HttpResponse>(const HttpRequest&)> refusal;  ///< before the body is read; nothing: it is let in
  std::vector<HttpRoute> routes;
  std::function<HttpResponse(int status)> without_route;  ///< 404, or what is wrong with a request that cannot be read
  std::function<HttpResponse(const std::exception_ptr& thrown)> of_exception;  ///< that the above threw
  std::vector<std::pair<const char*, const char*>> headers;                    ///< of every response
  std::size_t most_input = 0;                                                  ///< bytes of a request's body
};

/// A server on the loopback interface, without TLS.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// Binds the port of 127.0.0.1, 0 for any, and returns it; nothing where it is taken.
  virtual std::optional<int> bind(int port) = 0;
  /// Answers until the process ends.
  virtual void serve() = 0;
};

/// The server is in a module, tandem_http.so: the HTTP library brings TLS and compression along, a third of the time in which a
/// program starts. Throws std::runtime_error where the module is not found.
std::unique_ptr<HttpServer> make_http_server(HttpService service);

/// What the module has: the function `tandem_make_http_server`.
using MakeHttpServer = HttpServer*(HttpService service);

}  // namespace tandem::studies
