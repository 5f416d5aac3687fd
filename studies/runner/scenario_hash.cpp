#include "studies/runner/scenario_hash.h"

#include "studies/runner/text_digest.h"

namespace tandem::studies {

std::string hash_of_scenario(const std::string& complete_scenario) {
  return digest_of_text("tandem " TANDEM_VERSION "\n" + complete_scenario);
}

}  // namespace tandem::studies
