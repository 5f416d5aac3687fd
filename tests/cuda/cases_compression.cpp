#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// Multiples of 1/64 up to 1/2: sums of two are exact in bf16, and many magnitudes are equal.
std::vector<float> coarse_numbers(const Shape& shape, unsigned seed) {
  std::vector<float> numbers = random_numbers(shape, seed, 32);
  for (float& number : numbers) number = std::round(number) / 64;
  return numbers;
}

std::vector<float> random_bytes(const Shape& shape, unsigned seed) {
  std::vector<float> bytes = random_numbers(shape, seed, 128);
  for (float& byte : bytes) byte = std::floor(byte) + 128;
  return bytes;
}

/// As many ascending indices for each of so many selections.
std::vector<std::int32_t> selections(int count, int selected, int elements, unsigned seed) {
  std::vector<std::int32_t> indices;
  for (int s = 0; s < count; ++s) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    const std::vector<std::int32_t> draws = random_integers(Shape(elements), elements, seed + static_cast<unsigned>(s));
    for (std::size_t i = 0; i < all.size(); ++i) std::swap(all[i], all[static_cast<std::size_t>(draws[i])]);
    std::sort(all.begin(), all.begin() + selected);
    indices.insert(indices.end(), all.begin(), all.begin() + selected);
  }
  return indices;
}

/// Of a row of `columns`, so that the matrix has one of its columns twice.
std::vector<float> with_equal_columns(std::vector<float> numbers, std::size_t columns) {
  for (std::size_t i = 0; i < numbers.size(); i += columns) numbers[i + columns - 1] = numbers[i];
  return numbers;
}

}  // namespace

std::vector<OperationCase> compression_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    const std::string_view dtype = name_of(type);
    for (const auto& [n, k] : {std::pair{1, 1}, {300, 300}, {5000, 1}, {5000, 777}}) {
      const Shape all(n), some(k);
      cases.push_back({join_name("top_k_select", dtype, n, k),
                       OpKind::top_k_select,
                       {},
                       {read(all, type, coarse_numbers(all, 1)), write(some, type), write(some, DType::i32),
                        update(all, type, coarse_numbers(all, 2))}});
    }
    for (const auto& [m, k, n] :
         {std::tuple{1, 1, 1}, {3, 40, 50}, {2, 200, 9000}, {2, 1500, 9000}, {300, 5, 4100}, {6, 2, 20001}}) {
      const Shape sent(m, k);
      cases.push_back({join_name("sparse_sum", dtype, m, k, n),
                       OpKind::sparse_sum,
                       {},
                       {read(sent, type, 3), read_integers(sent, selections(m, k, n, 4)), write(Shape(n), type)}});
    }
    // parts, bytes of each, elements, those that are there
    for (const auto& [p, b, n, valid] : {std::tuple{1, 1, 3, 3},
                                         {4, 3, 90, 90},
                                         {3, 2, 33, 33},
                                         {1, 4, 32, 20},
                                         {2, 1, 16, 0},
                                         {4, 2, 20, 20},
                                         {2, 5000, 79999, 79999}}) {
      const Shape x(n);
      cases.push_back({join_name("sign_compress", dtype, p, b, n, valid),
                       OpKind::sign_compress,
                       SignAttributes{valid},
                       {read(x, type, 5), write(Shape(p, b), DType::u8), write(Shape(p), DType::f32), update(x, type, 6)}});
    }
    for (const auto& [p, b, n] : {std::tuple{1, 1, 5}, {3, 40, 960}, {5, 7, 273}, {3, 1300, 26001}}) {
      const Shape signs(p, b), scales(p);
      const CaseOperand bits = read(signs, DType::u8, random_bytes(signs, 7)), factors = read(scales, DType::f32, 8);
      cases.push_back({join_name("sign_sum", dtype, p, b), OpKind::sign_sum, {}, {bits, factors, write(Shape(8 * b), type)}});
      cases.push_back(
          {join_name("sign_expand", dtype, p, b, n), OpKind::sign_expand, {}, {bits, factors, write(Shape(n), type)}});
    }
    for (const auto& [n, r] : {std::pair{1, 1}, {7, 7}, {40, 3}, {1500, 5}}) {
      const Shape p(n, r);
      cases.push_back({join_name("orthogonalize", dtype, n, r), OpKind::orthogonalize, {}, {update(p, type, 9)}});
    }
    const Shape p(700, 3);
    cases.push_back({join_name("orthogonalize_equal_columns", dtype),
                     OpKind::orthogonalize,
                     {},
                     {update(p, type, with_equal_columns(random_numbers(p, 10), 3))}});
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  const Shape many(270000);  // more than one tile for each of as many blocks as there may be
  const Shape some(900);
  cases.push_back({"top_k_select_of_many",
                   OpKind::top_k_select,
                   {},
                   {read(many, DType::f32, coarse_numbers(many, 1)), write(some, DType::f32), write(some, DType::i32),
                    update(many, DType::f32, coarse_numbers(many, 2))}});
  return cases;
}

}  // namespace tandem::studies
