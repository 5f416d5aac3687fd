#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/shell/syntax.h"

namespace tandem::scenarios::shell {

/// A place in a script that moves on.
class Cursor {
 public:
  /// `from`: where the text begins in its file, for a part of a script.
  Cursor(std::string_view text, const Place& from);

  bool done() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  char next();
  void skip(std::size_t characters);
  Place place() const;

  /// Goes beyond spaces, tabs, and lines continued by a backslash.
  void skip_blanks();
  /// Goes beyond a comment that begins here, up to the end of its line.
  void skip_comment();
  /// Goes beyond blanks, comments and ends of lines, with the here-documents that follow these.
  void skip_lines();

  /// The body of a here-document begins behind the next end of a line.
  std::shared_ptr<HereDocument> here_document(std::string delimiter, bool strips_tabs, bool expands);

  /// Returns what lies before the bracket that closes one which was just opened, and goes beyond it. Quotes and brackets in it
  /// are passed over. Throws InputError at `opened` where nothing closes it.
  std::string up_to(char open, char close, const Place& opened);

  /// Returns the rest of a line and goes to its end.
  std::string line();

 private:
  struct Pending {
    std::shared_ptr<HereDocument> document;
    std::string delimiter;
    bool strips_tabs;
  };
  std::string_view text_;
  std::size_t at_ = 0;
  std::string file_;
  int line_, column_;
  std::vector<Pending> pending_;

  void read_pending();
};

}  // namespace tandem::scenarios::shell
