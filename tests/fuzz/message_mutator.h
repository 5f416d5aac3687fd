#pragma once

#include <google/protobuf/message_lite.h>

#include "tests/fuzz/target.h"

namespace tandem::fuzz {

/// Changes one to four fields of the message or of messages inside it, whatever their types: a number becomes an extreme one or
/// its neighbour, an item goes, comes twice, or changes places with another; texts change bytes. The message is one of
/// traces/*.proto.
void mutate_message(google::protobuf::MessageLite& message, Random& random);

/// Changes the content of a file of our own (traces/own_file.h) and seals it again, so that the change is not refused for its
/// checksum. Returns an empty text where the bytes are no such file.
std::string mutate_own_file(const std::string& bytes, Random& random, const std::vector<std::string>& words);

}  // namespace tandem::fuzz
