#include "scenarios/interop/megatron/tokenizers.h"

#include <cctype>
#include <charconv>
#include <span>
#include <vector>

#include "runtime/base/csv.h"
#include "runtime/base/embedded_file.h"

namespace tandem::scenarios {

std::span<const EmbeddedFile> embedded_tokenizers();

namespace {

struct TokenizerRow {
  std::string kind;     ///< "type", "patch" or "model"
  std::string spelled;  ///< for comparison
  KnownTokenizer tokenizer;
};

std::string plain_spelling(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

std::int64_t count_in(const CsvCell& cell) {
  std::int64_t count = 0;
  std::from_chars(cell.text.data(), cell.text.data() + cell.text.size(), count);
  return count;
}

const std::vector<TokenizerRow>& tokenizer_rows() {
  static const std::vector<TokenizerRow> rows = [] {
    std::vector<TokenizerRow> all;
    const EmbeddedFile& file = embedded_tokenizers().front();
    const CsvTable table = parse_csv(std::string(file.text), std::string(file.path));
    for (const std::vector<CsvCell>& row : table.rows)
      all.push_back({.kind = row[0].text,
                     .spelled = row[0].text == "model" ? plain_spelling(row[1].text) : row[1].text,
                     .tokenizer = {.name = row[1].text, .tokens = count_in(row[2]), .embedding = count_in(row[3])}});
    return all;
  }();
  return rows;
}

std::optional<KnownTokenizer> tokenizer_named(std::string_view kind, std::string_view name) {
  for (const TokenizerRow& row : tokenizer_rows())
    if (row.kind == kind && row.spelled == name) return row.tokenizer;
  return {};
}

}  // namespace

std::optional<KnownTokenizer> tokenizer_of_type(std::string_view type) { return tokenizer_named("type", type); }
std::optional<KnownTokenizer> tokenizer_of_patch(std::string_view type) { return tokenizer_named("patch", type); }

std::optional<KnownTokenizer> tokenizer_of_model(std::string_view path) {
  const std::string plain = plain_spelling(path);
  const TokenizerRow* longest = nullptr;
  for (const TokenizerRow& row : tokenizer_rows())
    if (row.kind == "model" && plain.find(row.spelled) != std::string::npos &&
        (longest == nullptr || row.spelled.size() > longest->spelled.size()))
      longest = &row;
  if (longest == nullptr) return {};
  return longest->tokenizer;
}

}  // namespace tandem::scenarios
