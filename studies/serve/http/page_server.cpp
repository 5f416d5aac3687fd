#include "studies/serve/http/page_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/failure.h"
#include "scenarios/reading/presets.h"
#include "studies/runner/step_failure.h"
#include "studies/serve/http/embedded_page.h"
#include "studies/serve/http/newest.h"
#include "studies/serve/job_kinds.h"
#include "studies/serve/job_stream.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* json_type = "application/json";
/// The page's own head says which script may run and that it asks this server alone, but may not say this.
constexpr const char* content_security = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

std::string text_of_json(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void answer(httplib::Response& response, int status, const Json& json) {
  response.status = status;
  response.set_content(text_of_json(json), json_type);
}

void refuse(httplib::Response& response, int status, const std::string& sentence) {
  answer(response, status, to_json_object(Failure{.code = ExitCode::failed, .place = {}, .sentence = sentence}));
}

/// Of an answer that the library makes.
std::string words_of_status(int status) {
  constexpr int not_found = 404, too_large = 413;
  if (status == not_found) return "there is nothing at this address";
  if (status == too_large)
    return "the request is too long, expected at most " + std::to_string(PageServer::most_input) + " bytes";
  return "the request cannot be read";
}

/// 422 for what is wrong with the input, 500 for everything else.
int status_of_failure(const Json& failure) {
  constexpr int unprocessable = 422, internal = 500;
  return failure.value("code", 0) == static_cast<int>(ExitCode::wrong_input) ? unprocessable : internal;
}

}  // namespace

struct PageServer::Impl {
  ScenarioFolder folder;
  FirstScenario first;
  RequestGuard guard;
  Newest newest;
  int door = -1;
  httplib::Server server;
  int port;  // which the server binds

  Impl(ScenarioFolder of, FirstScenario with, RequestGuard by, int wanted)
      : folder(std::move(of)), first(std::move(with)), guard(std::move(by)), port(bind(wanted)) {
    limit();
    server.set_pre_routing_handler([this](const auto& request, auto& response) { return let_in(request, response); });
    server.Get("/", [](const auto& /*request*/, auto& response) {
      response.set_content(std::string(embedded_serve_page().front().text), "text/html; charset=utf-8");
    });
    server.Get("/api/start", [this](const auto& /*request*/, auto& response) { answer(response, 200, start()); });
    server.Get("/api/file", [this](const auto& request, auto& response) { give_file(request, response); });
    server.Post("/api/job/(\\w+)", [this](const auto& request, auto& response) { do_job(request, response); });
    server.set_error_handler([](const auto& /*request*/, auto& response) {
      if (response.body.empty()) refuse(response, response.status, words_of_status(response.status));
    });
    server.set_exception_handler([](const auto& /*request*/, auto& response, const std::exception_ptr& thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (...) {
        answer(response, 500, to_json_object(failure_of_exception()));
      }
    });
  }

  int bind(int wanted) {
    // Not SO_REUSEPORT, which the library would set: two servers would share the port.
    int listening = -1;
    server.set_socket_options([&listening](auto socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      listening = socket;
    });
    constexpr const char* loopback = "127.0.0.1";
    if (wanted == 0)
      wanted = server.bind_to_any_port(loopback);
    else if (!server.bind_to_port(loopback, wanted))
      throw InputError({"--port " + std::to_string(wanted), 0, 0}, "the port is taken, expected a free one, or 0 for any");
    // The library lets five connections wait; a sixth would be tried again a second later.
    constexpr int waiting = 256;
    ::listen(listening, waiting);
    return wanted;
  }

  /// A connection is for one request, so that nothing of a request that was refused unread is taken for the next one, and no
  /// thread waits for a browser that says nothing.
  void limit() {
    constexpr std::size_t threads = 32;
    constexpr int patience_s = 10;
    server.new_task_queue = [] { return new httplib::ThreadPool(threads); };
    server.set_keep_alive_max_count(1);
    server.set_payload_max_length(most_input);
    server.set_read_timeout(patience_s);
    server.set_write_timeout(patience_s);
    server.set_default_headers({{"Content-Security-Policy", content_security},
                                {"X-Content-Type-Options", "nosniff"},
                                {"X-Frame-Options", "DENY"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Cross-Origin-Opener-Policy", "same-origin"},
                                {"Cache-Control", "no-store"}});
  }

  httplib::Server::HandlerResponse let_in(const httplib::Request& request, httplib::Response& response) const {
    using Is = httplib::Server::HandlerResponse;
    constexpr int unauthorized = 401, forbidden = 403;
    const std::array<std::string, 4> said{request.get_header_value("Host"), request.get_header_value("Origin"),
                                          request.get_header_value("Sec-Fetch-Site"), request.get_header_value("X-Tandem-Token")};
    const RequestOrigin origin{said[0], said[1], said[2], said[3]};
    const bool is_page = request.path == "/" && request.method == "GET";
    if (const char* refusal = is_page ? guard.refusal_of_page(origin) : guard.refusal_of_site(origin)) {
      refuse(response, forbidden, refusal);
      return Is::Handled;
    }
    if (!is_page && !guard.knows_token(origin)) {
      refuse(response, unauthorized, "the token is not the one that tandem serve printed");
      return Is::Handled;
    }
    return Is::Unhandled;
  }

  Json start() const {
    using scenarios::PresetKind;
    Json presets;
    for (const auto& [name, kind] : {std::pair{"models", PresetKind::model},
                                     {"clusters", PresetKind::cluster},
                                     {"gpus", PresetKind::gpu},
                                     {"frameworks", PresetKind::framework}})
      presets[name] = scenarios::preset_names(kind);
    return {{"tandem", TANDEM_VERSION},
            {"scenarios", folder.names()},
            {"presets", std::move(presets)},
            {"first", {{"name", first.name}, {"text", first.text}}}};
  }

  void give_file(const httplib::Request& request, httplib::Response& response) const {
    constexpr int not_found = 404;
    if (const std::optional<std::string> text = folder.text(request.get_param_value("name")))
      answer(response, 200, {{"text", *text}});
    else
      refuse(response, not_found, "there is no such scenario in the folder");
  }

  void do_job(const httplib::Request& request, httplib::Response& response) {
    constexpr int not_found = 404, conflict = 409;
    const std::size_t kind = job_kind_named(request.matches[1].str());
    if (kind == job_kinds().size()) return refuse(response, not_found, "there is no such job");
    constexpr std::size_t longest_name = 64;
    const std::string turn = request.get_header_value("X-Tandem-Turn").substr(0, longest_name);
    if (turn.empty()) return stream_job(kind, request.body, response);
    const Newest::Turn ours(newest, turn);
    if (!ours) return refuse(response, conflict, "a newer request took its place");
    finish_job(kind, request.body, response);
  }

  void finish_job(std::size_t kind, const std::string& body, httplib::Response& response) const {
    constexpr Seconds a_while = 60;
    JobStream job(door, kind, body);
    std::string line;
    for (;;) {
      const JobStream::Wait came = job.next(line, a_while);
      if (came == JobStream::Wait::nothing_yet) continue;  // the foreman ends what takes too long
      if (came == JobStream::Wait::end) return refuse(response, 500, "its process ended without a word");
      constexpr std::string_view begin = R"({"answer":)";
      if (line.starts_with(begin)) {  // which is passed on as it is
        response.set_content(line.substr(begin.size(), line.size() - begin.size() - 1), json_type);
        return;
      }
      const Json said = Json::parse(line, nullptr, false);
      if (said.is_object() && said.contains("failure")) return answer(response, status_of_failure(said), said);
    }
  }

  void stream_job(std::size_t kind, const std::string& body, httplib::Response& response) const {
    const auto job = std::make_shared<JobStream>(door, kind, body);
    response.set_chunked_content_provider("application/x-ndjson", [job](std::size_t /*offset*/, httplib::DataSink& sink) {
      constexpr Seconds between_signs_of_life = 1;
      std::string line;
      const JobStream::Wait came = job->next(line, between_signs_of_life);
      if (came == JobStream::Wait::end) {
        sink.done();
        return true;
      }
      line += '\n';  // alone it finds out whether anybody is still there
      return sink.write(line.data(), line.size());
    });
  }
};

PageServer::PageServer(ScenarioFolder folder, FirstScenario first, RequestGuard guard, int port)
    : impl_(std::make_unique<Impl>(std::move(folder), std::move(first), std::move(guard), port)) {}

PageServer::~PageServer() = default;

int PageServer::port() const { return impl_->port; }

void PageServer::serve(int door) {
  impl_->door = door;
  impl_->server.listen_after_bind();
}

}  // namespace tandem::studies
