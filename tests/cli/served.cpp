#include "tests/cli/served.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>

#include "tests/cli/study.h"

namespace tandem::cli {
namespace {

constexpr int patience_s = 120;

httplib::Client client_of(int port) {
  httplib::Client client("127.0.0.1", port);
  client.set_read_timeout(patience_s);
  return client;
}

httplib::Headers with_token(const Served::Headers& headers, const std::string& token) {
  httplib::Headers all(headers.begin(), headers.end());
  if (!headers.contains("X-Tandem-Token")) all.emplace("X-Tandem-Token", token);
  return all;
}

Answer answer_of(const httplib::Result& result) {
  if (!result) return {};
  return {result->status, result->body, {result->headers.begin(), result->headers.end()}};
}

std::string first_line(int descriptor) {
  std::string line;
  for (char c = 0; ::read(descriptor, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

}  // namespace

nlohmann::json Answer::last_line() const {
  std::istringstream lines(body);
  std::string last = "{}";
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return nlohmann::json::parse(last, nullptr, false);
}

Served::Served(const std::vector<std::string>& arguments) {
  std::array<int, 2> out{};
  if (::pipe(out.data()) != 0) throw std::runtime_error("no pipe");
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::close(out[0]);
    ::close(out[1]);
    std::vector<std::string> all = {TANDEM_BINARY, "serve", "--port", "0"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& one : all) argv.push_back(one.data());
    argv.push_back(nullptr);
    ::execv(TANDEM_BINARY, argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  const std::string address = first_line(out[0]);
  ::close(out[0]);
  const std::string host = "http://127.0.0.1:";
  EXPECT_TRUE(address.starts_with(host)) << address;
  if (!address.starts_with(host)) return;
  port_ = std::stoi(address.substr(host.size()));
  if (const std::size_t at = address.find("#token="); at != std::string::npos) token_ = address.substr(at + 7);
  EXPECT_EQ(get("/").status, 200);
  listening_ = children_of(process_);  // nothing was asked yet
}

Served::~Served() {
  if (process_ > 0) end(SIGKILL);
}

Answer Served::get(const std::string& path, const Headers& headers) const {
  return answer_of(client_of(port_).Get(path, with_token(headers, token_)));
}

Answer Served::post(const std::string& path, const std::string& body, const Headers& headers) const {
  return answer_of(client_of(port_).Post(path, with_token(headers, token_), body, "application/json"));
}

Answer Served::job(const std::string& kind, const std::string& text, const std::vector<std::string>& changes,
                   const Headers& headers) const {
  const nlohmann::json body = {{"name", "asked.yaml"}, {"text", text}, {"changes", changes}};
  return post("/api/job/" + kind, body.dump(), headers);
}

std::string Served::raw(const std::string& bytes) const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 4096> some{};
  for (ssize_t got = 0; (got = ::recv(socket, some.data(), some.size(), 0)) > 0;)
    answer.append(some.data(), static_cast<std::size_t>(got));
  ::close(socket);
  return answer;
}

int Served::end(int signal) {
  ::kill(process_, signal);
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<pid_t> Served::workers() const {
  std::vector<pid_t> workers = children_of(process_);
  std::erase_if(workers, [&](pid_t child) { return std::ranges::find(listening_, child) != listening_.end(); });
  return workers;
}

}  // namespace tandem::cli
