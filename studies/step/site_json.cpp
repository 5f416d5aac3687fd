#include "studies/step/site_json.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace tandem::studies {

nlohmann::ordered_json to_json_object(const Site& site) {
  return {{"runs", site.runs},
          {"gpu", site.gpu},
          {"framework", site.framework},
          {"kernels", site.kernels},
          {"communication", site.communication},
          {"overhead_s", site.overhead},
          {"spread", site.spread},
          {"covariance", site.covariance}};
}

Site site_from_json(const JsonValue& json) {
  Site site;
  json.read("runs", site.runs);
  json.read("gpu", site.gpu);
  json.read("framework", site.framework);
  json.read("kernels", site.kernels);
  json.read("communication", site.communication);
  json.read("overhead_s", site.overhead);
  json.read("spread", site.spread);
  const std::vector<JsonValue> covariance = json.at("covariance").elements();
  if (covariance.size() != site.covariance.size()) throw json.at("covariance").wrong("six numbers");
  for (std::size_t i = 0; i < covariance.size(); ++i) site.covariance.at(i) = covariance[i].signed_number();
  return site;
}

}  // namespace tandem::studies
