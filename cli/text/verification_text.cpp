#include "cli/text/verification_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"

namespace tandem::cli {

std::string to_text(const Verification& verification, const Screen& screen) {
  const VerificationTolerance& tolerance = verification.tolerance;
  const StepDifference& difference = verification.difference;
  const auto text_of = [](double value) { return TextCell{fmt::format("{:.2e}", value)}; };
  Table table({{"tensor", Column::Kind::name}, {"gradient"}, {"weight"}});
  for (const TensorDifference& tensor : difference.tensors)
    table.add({{tensor.tensor}, text_of(tensor.gradient), text_of(tensor.weight)});
  const bool same = verification.same();
  const std::string allowed = tolerance.gradients == tolerance.rest
                                  ? fmt::format("allowed {:.0e}", tolerance.rest)
                                  : fmt::format("allowed {:.0e}, of gradients {:.0e}", tolerance.rest, tolerance.gradients);
  Page page(screen);
  page.heading(fmt::format("Against the unsharded model (loss {:.6f}), largest relative differences", difference.reference_loss))
      .line(fmt::format("loss {:.2e}", difference.loss), Style::plain, 2)
      .table(table)
      .line(fmt::format("{}: largest {:.2e}, {}", same ? "the same step" : "NOT the same step", difference.largest(), allowed),
            same ? Style::green : Style::red);
  if (const auto& rounding = verification.other_rounding) {
    std::string causes;
    for (const std::string& cause : rounding->causes) causes += (causes.empty() ? "" : ", ") + cause;
    page.line(fmt::format("These are of the two steps without rounding. Rounded as trained they are {:.2e} apart: {}.",
                          rounding->difference, causes));
  }
  if (verification.compression_error) {
    page.line(fmt::format("The gradients are those applied and what all ranks held back. Those applied alone are off by {:.2e}.",
                          *verification.compression_error));
  }
  return page.text();
}

}  // namespace tandem::cli
