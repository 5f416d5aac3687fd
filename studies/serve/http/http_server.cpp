#include "studies/serve/http/http_server.h"

#include "runtime/base/open_module.h"

namespace tandem::studies {

std::unique_ptr<HttpServer> make_http_server(HttpService service) {
  void* const make = function_of_module("tandem_http.so", "tandem_make_http_server", "the HTTP server");
  return std::unique_ptr<HttpServer>(reinterpret_cast<MakeHttpServer*>(make)(std::move(service)));
}

}  // namespace tandem::studies
