#include "runtime/launch/control_plane.h"

#include <stdexcept>
#include <utility>

#include "runtime/launch/coordinator.h"
#include "runtime/launch/member.h"

namespace tandem {

ControlOptions control_options(const LaunchLimits& limits, std::function<std::string(std::uint32_t)> task_name) {
  ControlOptions options{.join_timeout = limits.join, .timeout = limits.stall, .silence = limits.silence};
  options.task_name = std::move(task_name);
  return options;
}

ControlPlane::ControlPlane(const Launch& launch, ControlOptions options) {
  if (launch.size == 1) return;
  if (launch.secret.empty()) throw std::logic_error("a launch of several processes without a secret");
  if (launch.rank == 0) coordinator_ = std::make_unique<Coordinator>(launch, options);
  member_ = std::make_unique<Member>(launch, options, coordinator_ ? std::optional(coordinator_->endpoint()) : std::nullopt);
}

ControlPlane::~ControlPlane() = default;

std::string ControlPlane::broadcast(const std::string& bytes) {
  return member_ ? member_->exchange(MessageKind::broadcast, bytes) : bytes;
}

std::vector<std::string> ControlPlane::gather(const std::string& bytes) {
  if (!member_) return {bytes};
  const std::string answer = member_->exchange(MessageKind::gather, bytes);
  std::vector<std::string> parts;
  for (PayloadReader reader(answer); !reader.at_end();) parts.push_back(reader.text());
  return parts;
}

void ControlPlane::barrier() {
  if (member_) member_->exchange(MessageKind::barrier, {});
}

void ControlPlane::agree(const std::string& what, const std::string& digest) {
  if (member_) member_->exchange(MessageKind::agree, PayloadWriter().text(what).text(digest).bytes());
}

void ControlPlane::leave() {
  if (member_) member_->exchange(MessageKind::leave, {});
}

void ControlPlane::progress(std::uint32_t task, bool waiting) {
  if (member_) member_->progress(task, waiting);
}

void ControlPlane::waits_no_more() {
  if (member_) member_->waits_no_more();
}

void ControlPlane::fail(const std::string& error) {
  if (member_) member_->fail(error);
}

std::optional<std::string> ControlPlane::failure() const { return member_ ? member_->failure() : std::nullopt; }

void ControlPlane::run(const std::function<void()>& work) {
  try {
    work();
    leave();
  } catch (const std::exception& error) {
    if (!failure()) fail(error.what());
    throw std::runtime_error(failure().value_or(error.what()));
  }
}

void ControlPlane::on_failure(std::function<void(const std::string&)> callback) {
  if (member_) member_->on_failure(std::move(callback));
}

}  // namespace tandem
