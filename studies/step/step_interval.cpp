#include "studies/step/step_interval.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/operation_named.h"

namespace tandem::studies {
namespace {

constexpr double error_of_gemm = 0.05, error_of_attention = 0.04, error_of_memory = 0.10, error_of_communication = 0.20;
constexpr double error_of_scan = 0.42;
constexpr double error_of_framework = 0.06, error_with_experts = 0.12;

double error_of_kernels(ErrorPart part) {
  return part == ErrorPart::products ? error_of_gemm : part == ErrorPart::attention ? error_of_attention : error_of_memory;
}

bool is_scan(std::string_view kernel) {
  const auto kind = operation_named(kernel);
  return kind && operation(*kind).op_class == OpClass::scan;
}

bool has_experts(const StepResult& result) {
  return std::ranges::any_of(result.kinds, [](const KindTime& kind) { return kind.name == operation(OpKind::route).name; });
}

double& of(ErrorParts& parts, ErrorPart part) { return parts[static_cast<std::size_t>(part)]; }

void add(ErrorParts& parts, ErrorPart part, double error) { of(parts, part) = std::hypot(of(parts, part), error); }

Interval interval_of(Seconds step_time, const ErrorParts& parts) {
  const double width = std::exp(nine_in_ten * total(parts));
  return {.low = step_time / width, .high = step_time * width, .parts = parts};
}

/// What remains to doubt at a site. Variances that two of its factors share count half for each.
ErrorParts parts_at(const SiteOfStep& step, const ErrorParts& expected, double within) {
  const auto& [kk, kc, ko, cc, co, oo] = step.site.covariance;
  const double k = step.of_kernels, c = step.of_communication, o = step.of_overhead;
  const double both = k * c * kc, with_kernels = k * o * ko, with_collectives = c * o * co;
  const std::array<double, 3> own = {k * k * kk + both + with_kernels, c * c * cc + both + with_collectives,
                                     o * o * oo + with_kernels + with_collectives};
  // Where factors make up for each other, one of these may be below 0; their sum is not.
  const double sum = std::max(0.0, own[0] + own[1] + own[2]);
  const double positive = std::max(own[0], 0.0) + std::max(own[1], 0.0) + std::max(own[2], 0.0);
  const auto error = [&](double variance) { return positive > 0 ? std::sqrt(std::max(variance, 0.0) / positive * sum) : 0; };
  double kernels = 0;
  for (const ErrorPart part : kernel_parts) kernels = std::hypot(kernels, expected[static_cast<std::size_t>(part)]);
  ErrorParts parts{};
  for (const ErrorPart part : kernel_parts)
    if (kernels > 0) of(parts, part) = error(own[0]) * expected[static_cast<std::size_t>(part)] / kernels;
  of(parts, ErrorPart::collectives) = error(own[1]);
  of(parts, ErrorPart::framework) = error(own[2]);
  of(parts, ErrorPart::unknown) = within * total(expected);
  return parts;
}

}  // namespace

std::string_view name_of(ErrorPart part) {
  constexpr std::array<std::string_view, error_part_count> names{"products",    "attention", "other_kernels",
                                                                 "collectives", "framework", "unknown"};
  return names[static_cast<std::size_t>(part)];
}

std::optional<ErrorPart> part_of_kernel(std::string_view name) {
  const auto kind = operation_named(name);
  if (!kind || is_communication(*kind)) return {};
  switch (operation(*kind).op_class) {
    case OpClass::gemm:
      return ErrorPart::products;
    case OpClass::attention_forward:
    case OpClass::attention_backward:
      return ErrorPart::attention;
    case OpClass::scan:
    case OpClass::memory:
    case OpClass::communication:
      break;
  }
  return ErrorPart::other_kernels;
}

double total(const ErrorParts& parts) {
  double squares = 0;
  for (const double part : parts) squares += part * part;
  return std::sqrt(squares);
}

ErrorParts expected_errors(const StepResult& result) {
  ErrorParts parts{};
  if (result.step_time <= 0) return parts;
  Seconds kernels = 0;
  double assumed = 0;
  for (const KindTime& kind : result.kinds) {
    const std::optional<ErrorPart> part = part_of_kernel(kind.name);
    if (!part) continue;
    kernels += kind.time;
    of(parts, *part) += kind.time * (is_scan(kind.name) ? error_of_scan : error_of_kernels(*part)) / result.step_time;
    assumed += kind.assumed / result.step_time;
  }
  add(parts, ErrorPart::products, assumed);
  const double waiting = kernels > 0 ? 1 + result.parts.bubble / kernels : 1;
  for (double& part : parts) part *= waiting;
  Seconds exposed = 0;
  for (const Seconds axis : result.parts.exposed) exposed += axis;
  of(parts, ErrorPart::collectives) = exposed * error_of_communication / result.step_time;
  of(parts, ErrorPart::framework) = has_experts(result) ? error_with_experts : error_of_framework;
  return parts;
}

double Interval::share_of(ErrorPart part) const {
  const double all = total(parts);
  return all > 0 ? std::pow(parts[static_cast<std::size_t>(part)] / all, 2) : 0;
}

double Interval::give_or_take_without(std::span<const ErrorPart> known) const {
  ErrorParts left = parts;
  for (const ErrorPart part : known) of(left, part) = 0;
  return std::expm1(nine_in_ten * total(left));
}

const Remedy& best_remedy(const Interval& interval) {
  return *std::ranges::min_element(remedies, {}, [&](const Remedy& r) { return interval.give_or_take_without(r.parts); });
}

StepClass class_of(const StepResult& result) {
  return {has_experts(result), result.gpu_architecture, result.framework, result.gpu};
}

SiteOfStep site_of(const StepResult& result) {
  Seconds kernels = result.parts.bubble, exposed = 0;
  for (const Seconds phase : result.parts.kernels) kernels += phase;
  for (const Seconds axis : result.parts.exposed) exposed += axis;
  return {.site = result.site,
          .of_kernels = kernels / result.step_time,
          .of_communication = exposed / result.step_time,
          .of_overhead = 1 / result.step_time};
}

Interval interval_around(Seconds step_time, ErrorParts parts, const StepClass& step, const IntervalTable& table,
                         const SiteOfStep& site) {
  const auto& [name, known] = table.narrowest(step);
  if (site.tells_of(step)) {
    Interval interval = interval_of(step_time, parts_at(site, parts, site.site.spread * known.within / nine_in_ten));
    interval.known_class = "site";
    interval.runs = static_cast<std::size_t>(site.site.runs);
    interval.sources = 1;
    return interval;
  }
  const double more = known.factor / nine_in_ten;
  if (more > 1)
    add(parts, ErrorPart::unknown, total(parts) * std::sqrt(more * more - 1));
  else
    for (double& part : parts) part *= more;
  const bool seen_gpu = table.gpus.contains(step.gpu), seen_framework = table.frameworks.contains(step.framework);
  if (!seen_gpu) add(parts, ErrorPart::unknown, table.unseen_gpu);
  if (!seen_framework) add(parts, ErrorPart::framework, table.unseen_framework);
  Interval interval = interval_of(step_time, parts);
  interval.known_class = name;
  interval.runs = known.rows;
  interval.sources = known.sources;
  interval.seen_gpu = seen_gpu;
  interval.seen_framework = seen_framework;
  return interval;
}

Interval step_interval(const StepResult& result) {
  return interval_around(result.step_time, expected_errors(result), class_of(result), interval_table(), site_of(result));
}

}  // namespace tandem::studies
