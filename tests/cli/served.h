#pragma once

#include <sys/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::cli {

/// An answer of `tandem serve`.
struct Answer {
  int status = 0;  ///< 0: none came
  std::string body;
  std::multimap<std::string, std::string> headers;

  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  /// Of an answer that comes in lines: the last one, an empty object where there is none.
  nlohmann::json last_line() const;
};

/// `tandem serve` at a free port, until this goes.
class Served {
 public:
  /// Starts it and waits for its address.
  explicit Served(const std::vector<std::string>& arguments);
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  using Headers = std::map<std::string, std::string>;
  /// Both send the token unless `headers` have one.
  Answer get(const std::string& path, const Headers& headers = {}) const;
  Answer post(const std::string& path, const std::string& body, const Headers& headers = {}) const;
  /// Asks for a job about a scenario.
  Answer job(const std::string& kind, const std::string& text, const std::vector<std::string>& changes = {},
             const Headers& headers = {}) const;
  /// Sends bytes and returns what comes until the other side closes the connection.
  std::string raw(const std::string& bytes) const;

  int port() const { return port_; }
  const std::string& token() const { return token_; }
  /// Ends it with a signal and returns its exit code, -1 where the signal ended it.
  int end(int signal);
  pid_t foreman() const { return process_; }
  /// The processes that work on jobs, if any, without those that these have started.
  std::vector<pid_t> workers() const;

 private:
  pid_t process_ = 0;
  std::vector<pid_t> listening_;  ///< the foreman's child that takes requests
  int port_ = 0;
  std::string token_;
};

}  // namespace tandem::cli
