#include "scenarios/shell/cursor.h"

#include <utility>

namespace tandem::scenarios::shell {

Cursor::Cursor(std::string_view text, const Place& from)
    : text_(text), file_(from.file), line_(from.line > 0 ? from.line : 1), column_(from.column > 0 ? from.column : 1) {}

Place Cursor::place() const { return {.file = file_, .line = line_, .column = column_}; }

char Cursor::next() {
  const char c = text_[at_++];
  if (c == '\n') {
    ++line_;
    column_ = 1;
    if (!pending_.empty()) read_pending();
  } else {
    ++column_;
  }
  return c;
}

void Cursor::skip(std::size_t characters) {
  for (std::size_t i = 0; i < characters && !done(); ++i) next();
}

void Cursor::skip_blanks() {
  while (!done()) {
    if (sees("\\\n")) {
      skip(2);
    } else if (sees("\\\r\n")) {
      skip(3);
    } else if (peek() == ' ' || peek() == '\t' || peek() == '\r') {
      next();
    } else {
      return;
    }
  }
}

void Cursor::skip_comment() {
  while (!done() && peek() != '\n') next();
}

void Cursor::skip_lines() {
  for (;;) {
    skip_blanks();
    if (peek() == '#' && !done()) {
      skip_comment();
    } else if (!done() && peek() == '\n') {
      next();
    } else {
      return;
    }
  }
}

std::shared_ptr<HereDocument> Cursor::here_document(std::string delimiter, bool strips_tabs, bool expands) {
  auto document = std::make_shared<HereDocument>(HereDocument{.text = {}, .expands = expands});
  pending_.push_back({document, std::move(delimiter), strips_tabs});
  return document;
}

std::string Cursor::line() {
  std::string text;
  while (!done() && peek() != '\n') text += next();
  return text;
}

void Cursor::read_pending() {
  for (const Pending& one : std::exchange(pending_, {})) {
    while (!done()) {
      std::string text = line();
      if (!done()) next();
      if (text.ends_with('\r')) text.pop_back();
      if (one.strips_tabs) text.erase(0, text.find_first_not_of('\t'));
      if (text == one.delimiter) break;
      one.document->text += text + "\n";
    }
  }
}

std::string Cursor::up_to(char open, char close, const Place& opened) {
  std::string text;
  int depth = 0;
  char quote = '\0';
  while (!done()) {
    const char c = peek();
    if (c == '\\' && quote != '\'') {
      text += next();
      if (!done()) text += next();
      continue;
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'' || c == '`') {
      quote = c;
    } else if (c == open) {
      ++depth;
    } else if (c == close && depth-- == 0) {
      next();
      return text;
    }
    text += next();
  }
  throw InputError(opened, std::string("nothing closes this bracket, expected `") + close + "`");
}

}  // namespace tandem::scenarios::shell
