#include "tests/fuzz/message_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "traces/dag.pb.h"
#include "traces/own_file.h"

namespace tandem::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using CppType = FieldDescriptor::CppType;

class MessageMutator {
 public:
  explicit MessageMutator(Random& random) : random_(random) {}

  void change(Message& root) {
    spots_.clear();
    collect(root);
    if (spots_.empty()) return;
    const Spot spot = spots_[below(spots_.size())];
    if (spot.field->is_repeated())
      change_list(*spot.message, spot.field);
    else
      set(*spot.message, spot.field, -1);
  }

 private:
  struct Spot {
    Message* message;
    const FieldDescriptor* field;
  };
  Random& random_;
  std::vector<Spot> spots_;

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  void collect(Message& message) {
    const Reflection& reflection = *message.GetReflection();
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* field = type.field(i);
      const bool is_message = field->cpp_type() == CppType::CPPTYPE_MESSAGE;
      if (!is_message || field->is_repeated()) spots_.push_back({&message, field});
      if (!is_message) continue;
      if (field->is_repeated())
        for (int item = 0; item < reflection.FieldSize(message, field); ++item)
          collect(*reflection.MutableRepeatedMessage(&message, field, item));
      else if (reflection.HasField(message, field))
        collect(*reflection.MutableMessage(&message, field));
    }
  }

  void change_list(Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, field);
    if (size == 0 || below(8) == 0) return add(message, field);
    const int one = static_cast<int>(below(static_cast<std::size_t>(size)));
    switch (below(5)) {
      case 0:
        reflection.SwapElements(&message, field, one, size - 1);
        return reflection.RemoveLast(&message, field);
      case 1:
        return reflection.SwapElements(&message, field, one, static_cast<int>(below(static_cast<std::size_t>(size))));
      case 2:
        if (field->cpp_type() != CppType::CPPTYPE_MESSAGE) return add(message, field);
        return reflection.AddMessage(&message, field)->CopyFrom(reflection.GetRepeatedMessage(message, field, one));
      default:
        if (field->cpp_type() != CppType::CPPTYPE_MESSAGE) set(message, field, one);
    }
  }

  void add(Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field->cpp_type()) {
      case CppType::CPPTYPE_MESSAGE:
        reflection.AddMessage(&message, field);
        return;
      case CppType::CPPTYPE_INT32:
        return reflection.AddInt32(&message, field, static_cast<std::int32_t>(integer(0)));
      case CppType::CPPTYPE_INT64:
        return reflection.AddInt64(&message, field, integer(0));
      case CppType::CPPTYPE_UINT32:
        return reflection.AddUInt32(&message, field, static_cast<std::uint32_t>(integer(0)));
      case CppType::CPPTYPE_UINT64:
        return reflection.AddUInt64(&message, field, static_cast<std::uint64_t>(integer(0)));
      case CppType::CPPTYPE_DOUBLE:
        return reflection.AddDouble(&message, field, real(0));
      case CppType::CPPTYPE_FLOAT:
        return reflection.AddFloat(&message, field, static_cast<float>(real(0)));
      case CppType::CPPTYPE_BOOL:
        return reflection.AddBool(&message, field, below(2) == 0);
      case CppType::CPPTYPE_STRING:
        return reflection.AddString(&message, field, text({}));
      case CppType::CPPTYPE_ENUM:
        return;
    }
  }

  /// Sets a field, or one item of a repeated one.
  void set(Message& message, const FieldDescriptor* field, int item) {
    const Reflection& reflection = *message.GetReflection();
    const auto put = [&](auto get, auto set_one, auto get_item, auto set_item, auto changed) {
      if (item < 0)
        (reflection.*set_one)(&message, field, changed((reflection.*get)(message, field)));
      else
        (reflection.*set_item)(&message, field, item, changed((reflection.*get_item)(message, field, item)));
    };
    using R = Reflection;
    const auto whole = [&](auto value) { return static_cast<decltype(value)>(integer(static_cast<std::int64_t>(value))); };
    switch (field->cpp_type()) {
      case CppType::CPPTYPE_INT32:
        return put(&R::GetInt32, &R::SetInt32, &R::GetRepeatedInt32, &R::SetRepeatedInt32, whole);
      case CppType::CPPTYPE_INT64:
        return put(&R::GetInt64, &R::SetInt64, &R::GetRepeatedInt64, &R::SetRepeatedInt64, whole);
      case CppType::CPPTYPE_UINT32:
        return put(&R::GetUInt32, &R::SetUInt32, &R::GetRepeatedUInt32, &R::SetRepeatedUInt32, whole);
      case CppType::CPPTYPE_UINT64:
        return put(&R::GetUInt64, &R::SetUInt64, &R::GetRepeatedUInt64, &R::SetRepeatedUInt64, whole);
      case CppType::CPPTYPE_DOUBLE:
        return put(&R::GetDouble, &R::SetDouble, &R::GetRepeatedDouble, &R::SetRepeatedDouble,
                   [&](double value) { return real(value); });
      case CppType::CPPTYPE_FLOAT:
        return put(&R::GetFloat, &R::SetFloat, &R::GetRepeatedFloat, &R::SetRepeatedFloat,
                   [&](float value) { return static_cast<float>(real(value)); });
      case CppType::CPPTYPE_BOOL:
        return put(&R::GetBool, &R::SetBool, &R::GetRepeatedBool, &R::SetRepeatedBool, [](bool value) { return !value; });
      case CppType::CPPTYPE_STRING:
        return put(&R::GetString, &R::SetString, &R::GetRepeatedString, &R::SetRepeatedString,
                   [&](const std::string& value) { return text(value); });
      case CppType::CPPTYPE_ENUM:
      case CppType::CPPTYPE_MESSAGE:
        return;
    }
  }

  std::int64_t integer(std::int64_t value) {
    using Limits = std::numeric_limits<std::int64_t>;
    const auto neighbour = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + random_() % 17 - 8);
    const std::int64_t values[] = {neighbour,
                                   neighbour,
                                   neighbour,
                                   0,
                                   -1,
                                   1,
                                   std::int64_t{1} << below(63),
                                   -(std::int64_t{1} << below(63)),
                                   std::numeric_limits<std::int32_t>::max(),
                                   Limits::max(),
                                   Limits::min(),
                                   static_cast<std::int64_t>(random_())};
    return values[below(std::size(values))];
  }

  double real(double value) {
    using Limits = std::numeric_limits<double>;
    const double values[] = {
        value * 2,           -value,        std::nextafter(value, 0), 0, -0.0, 1, Limits::quiet_NaN(), Limits::infinity(),
        -Limits::infinity(), Limits::max(), Limits::denorm_min(),     -1};
    return values[below(std::size(values))];
  }

  std::string text(std::string value) {
    if (value.empty() || below(4) == 0) return value + std::string(1 + below(4), static_cast<char>(random_()));
    if (below(2) == 0) return value.substr(0, below(value.size()));
    value[below(value.size())] = static_cast<char>(random_());
    return value;
  }
};

/// Messages with reflection, which those that programs use have not.
class ReflectedMessages {
 public:
  ReflectedMessages() {
    for (const char* schema : {"dag", "perfetto", "chakra"}) {
      std::ifstream file(TANDEM_SCHEMAS + std::string("/") + schema + ".pb.descriptors", std::ios::binary);
      google::protobuf::FileDescriptorSet read;
      if (!read.ParseFromIstream(&file) || read.file_size() != 1 || pool_.BuildFile(read.file(0)) == nullptr)
        throw std::runtime_error("the descriptors of traces/" + std::string(schema) + ".proto cannot be read");
    }
  }

  std::unique_ptr<Message> copy_of(const google::protobuf::MessageLite& message) {
    std::unique_ptr<Message> copy(types_.GetPrototype(pool_.FindMessageTypeByName(message.GetTypeName()))->New());
    copy->ParsePartialFromString(message.SerializePartialAsString());
    return copy;
  }

 private:
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory types_;
};

}  // namespace

void mutate_message(google::protobuf::MessageLite& message, Random& random) {
  static ReflectedMessages messages;
  const std::unique_ptr<Message> changed = messages.copy_of(message);
  MessageMutator mutator(random);
  for (std::size_t change = 1 + random() % 4; change > 0; --change) mutator.change(*changed);
  message.ParsePartialFromString(changed->SerializePartialAsString());
}

std::string mutate_own_file(const std::string& bytes, Random& random, const std::vector<std::string>& /*words*/) {
  file::File file;
  file::Content content;
  if (!file.ParseFromString(bytes) || !content.ParseFromString(file.content())) return {};
  mutate_message(content, random);
  file.set_content(content.SerializeAsString());
  file.set_checksum(traces::checksum_of(file.content()));
  return file.SerializeAsString();
}

}  // namespace tandem::fuzz
