#include "studies/serve/http/page_server.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/failure.h"
#include "scenarios/reading/presets.h"
#include "studies/runner/step_failure.h"
#include "studies/serve/http/embedded_page.h"
#include "studies/serve/http/http_server.h"
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

HttpResponse answer(int status, const Json& json) { return {.status = status, .type = json_type, .body = text_of_json(json)}; }

HttpResponse refusal(int status, const std::string& sentence) {
  return answer(status, to_json_object(Failure{.code = ExitCode::failed, .place = {}, .sentence = sentence}));
}

HttpResponse answer_of_exception(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    return answer(500, to_json_object(failure_of_exception()));
  }
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
  std::unique_ptr<HttpServer> server;
  int port;  // which the server binds

  Impl(ScenarioFolder of, FirstScenario with, RequestGuard by, int wanted)
      : folder(std::move(of)),
        first(std::move(with)),
        guard(std::move(by)),
        server(make_http_server(service())),
        port(bind(wanted)) {}

  HttpService service() {
    return {.refusal = [this](const HttpRequest& request) { return refusal_of(request); },
            .routes = {{"GET", "/", [](const HttpRequest&) { return page(); }},
                       {"GET", "/api/start", [this](const HttpRequest&) { return answer(200, start()); }},
                       {"GET", "/api/file", [this](const HttpRequest& request) { return file(request); }},
                       {"POST", "/api/job/(\\w+)", [this](const HttpRequest& request) { return do_job(request); }}},
            .without_route = [](int status) { return refusal(status, words_of_status(status)); },
            .of_exception = answer_of_exception,
            .headers = {{"Content-Security-Policy", content_security},
                        {"X-Content-Type-Options", "nosniff"},
                        {"X-Frame-Options", "DENY"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cross-Origin-Resource-Policy", "same-origin"},
                        {"Cross-Origin-Opener-Policy", "same-origin"},
                        {"Cache-Control", "no-store"}},
            .most_input = most_input};
  }

  int bind(int wanted) const {
    const std::optional<int> bound = server->bind(wanted);
    if (!bound)
      throw InputError({"--port " + std::to_string(wanted), 0, 0}, "the port is taken, expected a free one, or 0 for any");
    return *bound;
  }

  std::optional<HttpResponse> refusal_of(const HttpRequest& request) const {
    constexpr int unauthorized = 401, forbidden = 403;
    const std::array<std::string, 4> said{request.header("Host"), request.header("Origin"), request.header("Sec-Fetch-Site"),
                                          request.header("X-Tandem-Token")};
    const RequestOrigin origin{said[0], said[1], said[2], said[3]};
    const bool is_page = request.path == "/" && request.method == "GET";
    if (const char* why = is_page ? guard.refusal_of_page(origin) : guard.refusal_of_site(origin)) return refusal(forbidden, why);
    if (!is_page && !guard.knows_token(origin))
      return refusal(unauthorized, "the token is not the one that tandem serve printed");
    return {};
  }

  static HttpResponse page() {
    return {.type = "text/html; charset=utf-8", .body = std::string(embedded_serve_page().front().text)};
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

  HttpResponse file(const HttpRequest& request) const {
    constexpr int not_found = 404;
    const std::optional<std::string> text = folder.text(request.parameter("name"));
    return text ? answer(200, {{"text", *text}}) : refusal(not_found, "there is no such scenario in the folder");
  }

  HttpResponse do_job(const HttpRequest& request) {
    constexpr int not_found = 404, conflict = 409;
    const std::size_t kind = job_kind_named(request.part);
    if (kind == job_kinds().size()) return refusal(not_found, "there is no such job");
    constexpr std::size_t longest_name = 64;
    const std::string turn = request.header("X-Tandem-Turn").substr(0, longest_name);
    if (turn.empty()) return stream_job(kind, request.body);
    const Newest::Turn ours(newest, turn);
    return ours ? finish_job(kind, request.body) : refusal(conflict, "a newer request took its place");
  }

  HttpResponse finish_job(std::size_t kind, const std::string& body) const {
    constexpr Seconds a_while = 60;
    JobStream job(door, kind, body);
    std::string line;
    for (;;) {
      const JobStream::Wait came = job.next(line, a_while);
      if (came == JobStream::Wait::nothing_yet) continue;  // the foreman ends what takes too long
      if (came == JobStream::Wait::end) return refusal(500, "its process ended without a word");
      constexpr std::string_view begin = R"({"answer":)";
      if (line.starts_with(begin))  // which is passed on as it is
        return {.type = json_type, .body = line.substr(begin.size(), line.size() - begin.size() - 1)};
      const Json said = Json::parse(line, nullptr, false);
      if (said.is_object() && said.contains("failure")) return answer(status_of_failure(said), said);
    }
  }

  HttpResponse stream_job(std::size_t kind, const std::string& body) const {
    const auto next_line = [job = std::make_shared<JobStream>(door, kind, body)]() -> std::optional<std::string> {
      constexpr Seconds between_signs_of_life = 1;
      std::string line;
      if (job->next(line, between_signs_of_life) == JobStream::Wait::end) return {};
      return line + '\n';  // alone it finds out whether anybody is still there
    };
    return {.type = "application/x-ndjson", .next_piece = next_line};
  }
};

PageServer::PageServer(ScenarioFolder folder, FirstScenario first, RequestGuard guard, int port)
    : impl_(std::make_unique<Impl>(std::move(folder), std::move(first), std::move(guard), port)) {}

PageServer::~PageServer() = default;

int PageServer::port() const { return impl_->port; }

void PageServer::serve(int door) {
  impl_->door = door;
  impl_->server->serve();
}

}  // namespace tandem::studies
