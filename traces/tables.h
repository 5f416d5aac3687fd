#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "traces/dag.pb.h"
#include "traces/fields.h"

namespace tandem::traces {

// Records as rows of a table and back. A record takes the columns of its fields, one after the other; an array those of its
// elements; a list or variant one column, with its items in a table of their own.

/// Says why bytes are none of our tables. The file's name is for the caller to add.
struct CorruptTable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <>
struct IsVector<Buffers> : std::true_type {};
template <>
struct IsVector<Tasks> : std::true_type {};
template <typename T>
struct IsArray : std::false_type {};
template <typename T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};

template <typename T>
concept Whole = std::is_integral_v<T> || std::is_enum_v<T>;

/// Returns an operand as one number whose high bits change little from one to the next.
inline std::int64_t to_integer(const Operand& operand) {
  return (static_cast<std::int64_t>(operand.buffer) << 2) | static_cast<std::int64_t>(operand.access_bits);
}

class TableWriter {
 public:
  explicit TableWriter(file::Table& table) : table_(table) {}

  template <typename T>
  void add(const T& row) {
    next_ = 0;
    put(row);
  }

 private:
  struct Cursor {
    file::Column* column;
    std::uint64_t last = 0;
    std::unique_ptr<TableWriter> items = nullptr;
  };

  file::Table& table_;
  std::vector<Cursor> columns_;
  std::size_t next_ = 0;

  Cursor& next() {
    if (next_ == columns_.size()) columns_.push_back({table_.add_columns()});
    return columns_[next_++];
  }
  static TableWriter& items_of(Cursor& cursor) {
    if (!cursor.items) cursor.items = std::make_unique<TableWriter>(*cursor.column->mutable_items());
    return *cursor.items;
  }
  static void put_integer(Cursor& cursor, std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);  // differences may wrap
    cursor.column->add_integers(static_cast<std::int64_t>(bits - std::exchange(cursor.last, bits)));
  }

  template <typename T>
  void put(const T& value) {
    if constexpr (Record<T>) {
      std::apply([&](auto... field) { (put(value.*field), ...); }, fields_of<T>);
    } else if constexpr (std::is_same_v<T, Operand>) {
      put_integer(next(), to_integer(value));
    } else if constexpr (Whole<T>) {
      put_integer(next(), static_cast<std::int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      next().column->add_reals(static_cast<double>(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      next().column->add_texts(value);
    } else if constexpr (IsArray<T>::value) {
      for (const auto& element : value) put(element);
    } else if constexpr (IsVector<T>::value) {
      Cursor& cursor = next();
      put_integer(cursor, static_cast<std::int64_t>(value.size()));
      for (const auto& item : value) items_of(cursor).add(item);
    } else {
      put_variant(value, std::make_index_sequence<std::variant_size_v<T>>());
    }
  }

  /// Writes which alternative the variant holds, then a column for the items of each.
  template <typename T, std::size_t... I>
  void put_variant(const T& value, std::index_sequence<I...>) {
    put_integer(next(), static_cast<std::int64_t>(value.index()));
    const auto put_alternative = [&](auto index) {
      Cursor& cursor = next();
      if (value.index() == index) items_of(cursor).add(std::get<index>(value));
    };
    (put_alternative(std::integral_constant<std::size_t, I>()), ...);
  }
};

/// Reads records from a table. Throws CorruptTable where a column is missing, or a value does not fit into its field.
class TableReader {
 public:
  explicit TableReader(const file::Table& table) : table_(table) {}

  template <typename T>
  void read(T& row) {
    next_ = 0;
    get(row);
  }
  /// Throws CorruptTable unless all that the table holds has been read.
  void expect_end() const {
    if (columns_.size() != static_cast<std::size_t>(table_.columns_size())) throw CorruptTable("columns are left over");
    for (const Cursor& cursor : columns_) {
      const file::Column& column = *cursor.column;
      if (cursor.integer != column.integers_size() || cursor.real != column.reals_size() || cursor.text != column.texts_size())
        throw CorruptTable("values are left over");
      if (cursor.items) cursor.items->expect_end();
      if (!cursor.items && column.has_items()) throw CorruptTable("items are left over");
    }
  }

 private:
  struct Cursor {
    const file::Column* column;
    std::uint64_t last = 0;
    int integer = 0, real = 0, text = 0;
    std::unique_ptr<TableReader> items = nullptr;
  };

  const file::Table& table_;
  std::vector<Cursor> columns_;
  std::size_t next_ = 0;

  Cursor& next() {
    if (next_ == columns_.size()) {
      if (next_ == static_cast<std::size_t>(table_.columns_size())) throw CorruptTable("a column is missing");
      columns_.push_back({&table_.columns(static_cast<int>(next_))});
    }
    return columns_[next_++];
  }
  static TableReader& items_of(Cursor& cursor) {
    if (!cursor.items) cursor.items = std::make_unique<TableReader>(cursor.column->items());
    return *cursor.items;
  }
  static std::int64_t integer(Cursor& cursor) {
    if (cursor.integer == cursor.column->integers_size()) throw CorruptTable("a number is missing");
    cursor.last += static_cast<std::uint64_t>(cursor.column->integers(cursor.integer++));
    return static_cast<std::int64_t>(cursor.last);
  }
  static std::int64_t integer_from_0_to(std::int64_t most, Cursor& cursor) {
    const std::int64_t value = integer(cursor);
    if (value < 0 || value > most) throw CorruptTable("a number is out of range");
    return value;
  }

  template <typename T>
  void get(T& value) {
    if constexpr (Record<T>) {
      read_fields(
          value, [this](auto& field) { this->get(field); },
          [this] { return next_ == static_cast<std::size_t>(table_.columns_size()); });
    } else if constexpr (std::is_same_v<T, Operand>) {
      constexpr std::int64_t all_bits = 0xFFFFFFFF;
      const auto bits = static_cast<std::uint32_t>(integer_from_0_to(all_bits, next()));
      if ((bits & 3U) > static_cast<std::uint32_t>(last_of<Access>)) throw CorruptTable("an operand's access is unknown");
      value = {bits >> 2, bits & 3U};
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(integer_from_0_to(static_cast<std::int64_t>(last_of<T>), next()));
    } else if constexpr (std::is_integral_v<T>) {
      const std::int64_t number = integer(next());
      if (!std::in_range<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>(number) ||
          (std::is_same_v<T, bool> && number > 1))
        throw CorruptTable("a number is out of range");
      value = static_cast<T>(number);
    } else if constexpr (std::is_floating_point_v<T>) {
      Cursor& cursor = next();
      if (cursor.real == cursor.column->reals_size()) throw CorruptTable("a number is missing");
      value = static_cast<T>(cursor.column->reals(cursor.real++));
    } else if constexpr (std::is_same_v<T, std::string>) {
      Cursor& cursor = next();
      if (cursor.text == cursor.column->texts_size()) throw CorruptTable("a text is missing");
      value = cursor.column->texts(cursor.text++);
    } else if constexpr (IsArray<T>::value) {
      for (auto& element : value) get(element);
    } else if constexpr (IsVector<T>::value) {
      Cursor& cursor = next();
      value.clear();
      // Not reserved: the count may be wrong, and the items end before memory does.
      for (std::int64_t left = integer(cursor); left != 0; --left) {
        if (left < 0) throw CorruptTable("a list of negative length");
        typename T::value_type item{};
        items_of(cursor).read(item);
        value.push_back(std::move(item));
      }
    } else {
      get_variant(value, std::make_index_sequence<std::variant_size_v<T>>());
    }
  }

  template <typename T, std::size_t... I>
  void get_variant(T& value, std::index_sequence<I...>) {
    const auto chosen = static_cast<std::size_t>(integer_from_0_to(sizeof...(I) - 1, next()));
    const auto get_alternative = [&](auto index) {
      Cursor& cursor = next();
      if (chosen == index) items_of(cursor).read(value.template emplace<index>());
    };
    (get_alternative(std::integral_constant<std::size_t, I>()), ...);
  }
};

template <typename T>
void write_table(const T& record, file::Table& table) {
  TableWriter(table).add(record);
}

template <typename T>
void read_table(const file::Table& table, T& record) {
  TableReader reader(table);
  reader.read(record);
  reader.expect_end();
}

}  // namespace tandem::traces
