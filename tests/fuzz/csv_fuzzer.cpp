// Tables. By itself, as the fewer branches an executable has the more inputs libFuzzer tries in a second.
#include "runtime/base/csv.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

[[maybe_unused]] const Registered csv({
    {.name = "csv",
     .read = [](const std::string& bytes) { parse_csv(bytes, "input.csv"); },
     .seeds = [] { return std::vector<std::string>{"\xEF\xBB\xBFid,name\r\n1,\"a \"\"b\"\", c\"\r\n\n2,\n"}; }},
});

}  // namespace
}  // namespace tandem::fuzz
