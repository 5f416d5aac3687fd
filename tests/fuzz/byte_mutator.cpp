#include "tests/fuzz/byte_mutator.h"

#include <cctype>
#include <iterator>

namespace tandem::fuzz {
namespace {

const std::string shreds[] = {"0",
                              "-1",
                              "1e308",
                              "99999999999999999999",
                              "NaN",
                              "null",
                              "true",
                              "[]",
                              "{}",
                              "\"",
                              "'",
                              "(",
                              ")",
                              "]",
                              "}",
                              ",",
                              ":",
                              "#",
                              "\\",
                              "\n",
                              "$",
                              "${X}",
                              "${X:-61}",
                              "\t",
                              "=",
                              "-",
                              "$((1/0))",
                              "$((1<<70))",
                              "[0-99999999]",
                              "[9-0]",
                              "\r\n",
                              std::string(1, '\0'),
                              "\xff\xfe"};

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

}  // namespace

std::string mutate_bytes(std::string bytes, Random& random, const std::vector<std::string>& words) {
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const auto shred = [&]() -> const std::string& {
    return words.empty() || below(2) == 0 ? shreds[below(std::size(shreds))] : words[below(words.size())];
  };
  for (std::size_t change = 1 + below(4); change > 0; --change) {
    if (bytes.empty()) bytes = shred();
    const std::size_t at = below(bytes.size()), size = 1 + below(std::size_t{1} << below(8));
    switch (below(8)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(at, size);
        break;
      case 3:
        bytes.insert(below(bytes.size()), std::string(bytes, at, size));
        break;
      case 4:
        bytes.insert(at, shred());
        break;
      case 5:
        if (below(4) == 0) bytes.resize(at);
        break;
      case 6: {  // a word or number becomes another
        std::size_t from = at, to = at;
        while (from > 0 && is_of_word(bytes[from - 1])) --from;
        while (to < bytes.size() && is_of_word(bytes[to])) ++to;
        bytes.replace(from, to - from, shred());
        break;
      }
      default: {  // a line moves
        const std::size_t from = at == 0 ? 0 : bytes.rfind('\n', at - 1) + 1;
        const std::size_t end = bytes.find('\n', at), to = end == std::string::npos ? bytes.size() : end + 1;
        const std::string line = bytes.substr(from, to - from);
        bytes.erase(from, to - from);
        bytes.insert(bytes.empty() ? 0 : below(bytes.size()), line);
      }
    }
  }
  return bytes;
}

}  // namespace tandem::fuzz
