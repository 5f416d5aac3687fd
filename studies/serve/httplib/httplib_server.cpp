#include <httplib.h>
#include <sys/socket.h>

#include <utility>

#include "studies/serve/http/http_server.h"

namespace tandem::studies {
namespace {

HttpRequest request_of(const httplib::Request& request) {
  return {.method = request.method,
          .path = request.path,
          .body = request.body,
          .part = request.matches.size() > 1 ? request.matches[1].str() : "",
          .header = [&](const char* name) { return request.get_header_value(name); },
          .parameter = [&](const char* name) { return request.get_param_value(name); }};
}

void send(HttpResponse answer, httplib::Response& response) {
  response.status = answer.status;
  if (!answer.next_piece) {
    response.set_content(std::move(answer.body), answer.type);
    return;
  }
  response.set_chunked_content_provider(answer.type,
                                        [next = std::move(answer.next_piece)](std::size_t /*offset*/, httplib::DataSink& sink) {
                                          const std::optional<std::string> piece = next();
                                          if (piece) return sink.write(piece->data(), piece->size());
                                          sink.done();
                                          return true;
                                        });
}

class HttplibServer final : public HttpServer {
 public:
  explicit HttplibServer(HttpService service) : service_(std::move(service)) {
    limit();
    server_.set_default_headers(httplib::Headers(service_.headers.begin(), service_.headers.end()));
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      auto refusal = service_.refusal(request_of(request));
      if (!refusal) return httplib::Server::HandlerResponse::Unhandled;
      send(*std::move(refusal), response);
      return httplib::Server::HandlerResponse::Handled;
    });
    for (const HttpRoute& route : service_.routes) {
      const auto answer = [&route](const httplib::Request& request, httplib::Response& response) {
        send(route.answer(request_of(request)), response);
      };
      route.method == std::string_view("POST") ? server_.Post(route.pattern, answer) : server_.Get(route.pattern, answer);
    }
    server_.set_error_handler([this](const auto& /*request*/, auto& response) {
      if (response.body.empty()) send(service_.without_route(response.status), response);
    });
    server_.set_exception_handler([this](const auto& /*request*/, auto& response, const std::exception_ptr& thrown) {
      send(service_.of_exception(thrown), response);
    });
  }

  std::optional<int> bind(int port) override {
    // Not SO_REUSEPORT, which the library would set: two servers would share the port.
    int listening = -1;
    server_.set_socket_options([&listening](auto socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      listening = socket;
    });
    constexpr const char* loopback = "127.0.0.1";
    if (port == 0)
      port = server_.bind_to_any_port(loopback);
    else if (!server_.bind_to_port(loopback, port))
      return {};
    // The library lets five connections wait; a sixth would be tried again a second later.
    constexpr int waiting = 256;
    ::listen(listening, waiting);
    return port;
  }

  void serve() override { server_.listen_after_bind(); }

 private:
  HttpService service_;
  httplib::Server server_;

  /// A connection is for one request, so that nothing of a request that was refused unread is taken for the next one, and no
  /// thread waits for a browser that says nothing.
  void limit() {
    constexpr std::size_t threads = 32;
    constexpr int patience_s = 10;
    server_.new_task_queue = [] { return new httplib::ThreadPool(threads); };
    server_.set_keep_alive_max_count(1);
    server_.set_payload_max_length(service_.most_input);
    server_.set_read_timeout(patience_s);
    server_.set_write_timeout(patience_s);
  }
};

}  // namespace
}  // namespace tandem::studies

extern "C" __attribute__((visibility("default"))) tandem::studies::HttpServer* tandem_make_http_server(
    tandem::studies::HttpService service) {
  return new tandem::studies::HttplibServer(std::move(service));
}
