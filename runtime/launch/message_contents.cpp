#include "runtime/launch/message_contents.h"

#include <limits>
#include <stdexcept>

#include "runtime/launch/message.h"

namespace tandem {
namespace {

constexpr std::size_t longest_name = 512;  // of a version, session or host

std::string name_from(PayloadReader& reader) {
  std::string name = reader.text();
  if (name.size() > longest_name)
    throw std::invalid_argument("a message has a name of " + std::to_string(name.size()) + " bytes");
  return name;
}

std::uint32_t task_from(PayloadReader& reader) {
  const std::uint64_t task = reader.number();
  if (task > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("a message has a task beyond all");
  return static_cast<std::uint32_t>(task);
}

void require_end(const PayloadReader& reader) {
  if (!reader.at_end()) throw std::invalid_argument("a message is too long");
}

}  // namespace

std::string payload_of(const Hello& hello) {
  const auto cut = [](const std::string& name) { return std::string_view(name).substr(0, longest_name); };
  return PayloadWriter()
      .text(cut(hello.version))
      .text(cut(hello.session))
      .number(hello.size)
      .number(hello.rank)
      .text(cut(hello.host))
      .bytes();
}

Hello read_hello(std::string_view payload) {
  PayloadReader reader(payload);
  Hello hello;
  hello.version = name_from(reader);
  hello.session = name_from(reader);
  hello.size = reader.number();
  hello.rank = reader.number();
  hello.host = name_from(reader);
  require_end(reader);
  return hello;
}

std::string report_payload(const ProgressReport& report) {
  return PayloadWriter().number(report.count).number(report.task).number(report.waiting ? 1 : 0).bytes();
}

ProgressReport read_report(std::string_view payload) {
  PayloadReader reader(payload);
  ProgressReport report;
  report.count = reader.number();
  report.task = task_from(reader);
  report.waiting = reader.number() != 0;
  require_end(reader);
  return report;
}

std::string pulse_payload(const ProgressReport& rank_0) {
  return PayloadWriter().number(rank_0.count).number(rank_0.task).bytes();
}

ProgressReport read_pulse(std::string_view payload) {
  PayloadReader reader(payload);
  ProgressReport report;
  report.count = reader.number();
  report.task = task_from(reader);
  require_end(reader);
  return report;
}

}  // namespace tandem
