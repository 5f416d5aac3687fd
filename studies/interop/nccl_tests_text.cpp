#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <regex>
#include <string_view>

#include "runtime/base/nearest.h"
#include "studies/interop/nccl_tests.h"
#include "studies/interop/nccl_tests_words.h"

namespace tandem::studies {
namespace {

struct Token {
  std::string_view text;
  int column = 0;
};

std::vector<Token> tokens_of(std::string_view line) {
  std::vector<Token> tokens;
  for (std::size_t begin = line.find_first_not_of(" \t\r"); begin != std::string_view::npos;
       begin = line.find_first_not_of(" \t\r", begin)) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    tokens.push_back({line.substr(begin, end - begin), static_cast<int>(begin) + 1});
    begin = end;
  }
  return tokens;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns by how much a printed number may be off: half of its last digit.
double slack_of(std::string_view text) {
  const std::size_t exponent_at = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, exponent_at);
  const std::size_t point = digits.find('.');
  const auto decimals = point == std::string_view::npos ? 0.0 : static_cast<double>(digits.size() - point - 1);
  const double exponent =
      exponent_at == std::string_view::npos
          ? 0
          : static_cast<double>(number_in<int>(text.substr(exponent_at + (text[exponent_at + 1] == '+' ? 2 : 1))).value_or(0));
  return 0.5 * std::pow(10.0, exponent - decimals);
}

/// The columns of a table, by its head.
struct Columns {
  bool has_root = true;
  std::size_t stride = 4;    ///< columns of a half: time, algbw, busbw, #wrong, and what a version adds
  bool counts_wrong = true;  ///< older versions have the largest error there
};

class TextReader {
 public:
  explicit TextReader(std::string file) : file_(std::move(file)) { runs_.emplace_back(); }

  std::vector<NcclTestRun> read(const std::string& text) && {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      ++line_;
      read_line(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    std::erase_if(runs_, [](const NcclTestRun& run) { return run.rows.empty(); });
    return std::move(runs_);
  }

 private:
  std::string file_;
  int line_ = 0;
  std::vector<NcclTestRun> runs_;
  Columns columns_;

  Place at(int column = 1) const { return {file_, line_, column}; }
  NcclTestRun& run() { return runs_.back(); }

  /// Begins another run where a program begins whose predecessor has printed rows.
  void begin_run() {
    if (run().rows.empty()) return;
    runs_.emplace_back();
    columns_ = {};
  }

  void read_line(std::string_view line) {
    const std::vector<Token> tokens = tokens_of(line);
    if (const std::size_t type = type_at(tokens); type != 0) return read_row(tokens, type);
    static const std::regex rank(
        R"(Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*?)\s*$)");
    static const std::regex threads(R"(nThread\s+(\d+)\s+nGpus\s+(\d+))");
    static const std::regex outside(R"(Out of bounds values\s*:\s*(\d+)\s+(\w+))");
    static const std::regex program(R"(([a-z_0-9]+)_perf)");
    std::match_results<std::string_view::const_iterator> match;
    const auto group = [&](std::size_t i) { return std::string(match[i].first, match[i].second); };
    if (line.find("Rank") != std::string_view::npos && std::regex_search(line.begin(), line.end(), match, rank)) {
      const std::int64_t number = number_in<std::int64_t>(group(1)).value_or(0);
      if (run().ranks.contains(number)) begin_run();
      run().ranks[number] = {number_in<std::int64_t>(group(2)).value_or(0), group(3), group(4)};
    } else if (line.find("nThread") != std::string_view::npos && std::regex_search(line.begin(), line.end(), match, threads)) {
      begin_run();
      run().ranks_per_process =
          ranks_of_process(number_in<std::int64_t>(group(1)).value_or(0), number_in<std::int64_t>(group(2)).value_or(0));
    } else if (line.find("Out of bounds") != std::string_view::npos &&
               std::regex_search(line.begin(), line.end(), match, outside)) {
      if (group(1) != "0" || group(2) == "FAILED")
        throw InputError(at(), group(1) + " values were out of bounds, expected a run whose results are right");
    } else if (line.find("algbw") != std::string_view::npos && line.find("time") != std::string_view::npos) {
      read_head(tokens);
    } else if (line.find("_perf") != std::string_view::npos && std::regex_search(line.begin(), line.end(), match, program)) {
      if (line.find("concluded") != std::string_view::npos) return;
      begin_run();
      if (const std::string name = nccl_test_named_in(group(1)); !name.empty()) run().name = name;
    } else if (line.find("ccl-tests") != std::string_view::npos || line.find("CCL version") != std::string_view::npos) {
      add_library(line);
    }
  }

  void add_library(std::string_view line) {
    const std::size_t first = line.find_first_not_of("# \t");
    std::string text(first == std::string_view::npos ? line : line.substr(first));
    while (!text.empty() && std::string_view(" \r\t").find(text.back()) != std::string_view::npos) text.pop_back();
    if (text.size() < 120 && run().libraries.find(text) == std::string::npos)
      run().libraries += (run().libraries.empty() ? "" : ", ") + text;
  }

  void read_head(const std::vector<Token>& tokens) {
    columns_ = {.has_root = false};
    std::vector<std::size_t> times;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].text == "root") columns_.has_root = true;
      if (tokens[i].text == "time") times.push_back(i);
      if (tokens[i].text == "error" || tokens[i].text == "res") columns_.counts_wrong = false;
    }
    columns_.stride = times.size() > 1 ? times[1] - times[0] : times.size() == 1 ? tokens.size() - times[0] : 4;
  }

  /// Returns the index of the type of a row; 0 where the line is none.
  static std::size_t type_at(const std::vector<Token>& tokens) {
    for (std::size_t i = 2; i + 4 < tokens.size(); ++i)
      if (word_of_type(tokens[i].text) != 0 && number_in<std::int64_t>(tokens[i - 1].text) && size_in(tokens[i - 2].text))
        return i;
    return 0;
  }

  /// A launcher may put its mark right before the size: "0:1024", "[1,0]<stdout>:1024".
  static std::optional<std::int64_t> size_in(std::string_view text) {
    const std::size_t mark = text.find_last_of(":>]");
    return number_in<std::int64_t>(mark == std::string_view::npos ? text : text.substr(mark + 1));
  }

  void read_row(const std::vector<Token>& tokens, std::size_t type) {
    NcclTestRun::Row row{.bytes = *size_in(tokens[type - 2].text),
                         .count = number_in<std::int64_t>(tokens[type - 1].text).value_or(0),
                         .word = word_of_type(tokens[type].text),
                         .redop = std::string(tokens[type + 1].text),
                         .place = at(tokens[type - 2].column)};
    std::size_t next = type + 2;
    if (columns_.has_root) row.root = number_in<std::int64_t>(tokens[next++].text).value_or(-1);
    for (; next + 2 < tokens.size(); next += columns_.stride) {
      if (tokens[next].text == "N/A" || tokens[next].text == "SKIP") continue;
      row.measured.push_back(measured_in(tokens, next));
    }
    if (row.measured.empty()) throw InputError(row.place, "is a row without times, expected time, algbw and busbw");
    if (run().rows.empty()) run().place = row.place;
    run().rows.push_back(std::move(row));
  }

  NcclTestRun::Measured measured_in(const std::vector<Token>& tokens, std::size_t first) const {
    const auto value = [&](std::size_t i, const char* what) {
      const std::optional<double> number = number_in<double>(tokens[i].text);
      if (!number || !std::isfinite(*number) || *number < 0)
        throw InputError(at(tokens[i].column),
                         std::string(what) + " is " + excerpt(tokens[i].text) + ", expected a number, as nccl-tests prints it");
      return *number;
    };
    NcclTestRun::Measured one{.time_us = value(first, "time"),
                              .time_slack = slack_of(tokens[first].text),
                              .algbw = value(first + 1, "algbw"),
                              .algbw_slack = slack_of(tokens[first + 1].text),
                              .busbw = value(first + 2, "busbw"),
                              .busbw_slack = slack_of(tokens[first + 2].text),
                              .place = at(tokens[first].column)};
    if (columns_.counts_wrong && first + 3 < tokens.size() && tokens[first + 3].text != "N/A") {
      const std::optional<double> wrong = number_in<double>(tokens[first + 3].text);
      if (wrong && *wrong != 0)
        throw InputError(at(tokens[first + 3].column), "#wrong is " + excerpt(tokens[first + 3].text) +
                                                           ", expected 0: the results are not right, and so may be the times");
    }
    return one;
  }
};

}  // namespace

std::vector<NcclTestRun> parse_nccl_tests_text(const std::string& text, const std::string& file) {
  return TextReader(file).read(text);
}

}  // namespace tandem::studies
