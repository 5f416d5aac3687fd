#include "studies/interop/ibnetdiscover.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <unordered_map>

#include "runtime/base/nearest.h"

namespace tandem::studies {
namespace {

struct IbRate {
  std::string_view name;
  double gbps;  ///< of a lane
};
constexpr double ten_bits = 8.0 / 10, sixty_six_bits = 64.0 / 66;
constexpr std::array<IbRate, 9> ib_rates{{{"SDR", 2.5 * ten_bits},
                                          {"DDR", 5 * ten_bits},
                                          {"QDR", 10 * ten_bits},
                                          {"FDR10", 10.3125 * sixty_six_bits},
                                          {"FDR", 14.0625 * sixty_six_bits},
                                          {"EDR", 25.78125 * sixty_six_bits},
                                          {"HDR", 50},
                                          {"NDR", 100},
                                          {"XDR", 200}}};

class IbReader {
 public:
  IbReader(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {}

  IbFabric read() && {
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_;
      read_line(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    check_ends();
    return std::move(fabric_);
  }

 private:
  const std::string& text_;
  std::string file_;
  int line_ = 0;
  IbFabric fabric_;
  std::unordered_map<std::string, std::size_t> by_id_;

  Place here() const { return {file_, line_, 1}; }

  void read_line(const std::string& line) {
    // Switch  24 "S-5442ba00003080"  # "ISR9024 Voltaire" base port 0 lid 6 lmc 0
    static const std::regex head(R"rx(^\s*(Switch|Ca|Hca|Rt|Router)\s+(\d+)\s+"([^"]*)"\s*(?:#\s*"([^"]*)")?.*$)rx");
    // [22]  "H-8f10403961354"[1](8f10403961355)  # "MT23108 .." lid 4 4xSDR; of an adapter: [1](8f10403961355)  "S-.."[22]  # ..
    static const std::regex port(R"rx(^\s*\[(\d+)\](?:\[ext \d+\])?\s*(?:\([0-9a-fA-F]+\))?\s*)rx"
                                 R"rx("([^"]*)"\s*\[(\d+)\](?:\[ext \d+\])?\s*(?:\([0-9a-fA-F]+\))?\s*(?:#(.*))?$)rx");
    static const std::regex other(R"rx(^\s*(#.*|(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=.*|)rx"
                                  R"rx(Hostname:.*|(Non-Chassis|Spine|Line|Chassis).*)?\s*$)rx");
    std::smatch match;
    if (!line.empty() && (line.front() == '[' || line.find('[') != std::string::npos) && std::regex_match(line, match, port)) {
      add_port(match);
    } else if (std::regex_match(line, match, head)) {
      add_node(match);
    } else if (!std::regex_match(line, other)) {
      throw InputError(
          here(), excerpt(line) + " is no line of ibnetdiscover, expected Switch, Ca and their ports such as [1] \"S-..\"[2]");
    }
  }

  void add_node(const std::smatch& match) {
    IbFabric::Node node{.id = match[3].str(), .description = match[4].str(), .place = here()};
    const std::string kind = match[1].str();
    node.kind = kind == "Switch"                ? IbFabric::Kind::node_switch
                : kind == "Ca" || kind == "Hca" ? IbFabric::Kind::adapter
                                                : IbFabric::Kind::router;
    if (!by_id_.emplace(node.id, fabric_.nodes.size()).second)
      throw InputError(here(), "node " + excerpt(node.id) + " stands there twice, expected each once");
    fabric_.nodes.push_back(std::move(node));
  }

  static int number_of(const std::string& digits) {
    int number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  void add_port(const std::smatch& match) {
    if (fabric_.nodes.empty()) throw InputError(here(), "is a port of no node, expected a line Switch or Ca before it");
    IbFabric::Port port{
        .number = number_of(match[1].str()), .to = match[2].str(), .to_number = number_of(match[3].str()), .place = here()};
    port.gbps = rate_in(match[4].str());
    IbFabric::Node& node = fabric_.nodes.back();
    if (!node.ports.emplace(port.number, port).second)
      throw InputError(
          here(), "port " + std::to_string(port.number) + " of " + excerpt(node.id) + " stands there twice, expected each once");
  }

  /// The last word behind the description of the other end that is a link's width and rate.
  static double rate_in(const std::string& comment) {
    static const std::regex link(R"rx((\d+)x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b)rx");
    double gbps = 0;
    const std::size_t behind = comment.rfind('"');
    const std::string rest = behind == std::string::npos ? comment : comment.substr(behind);
    for (std::sregex_iterator at(rest.begin(), rest.end(), link), end; at != end; ++at) gbps = gbps_of_link(at->str());
    return gbps;
  }

  /// Both ends of a cable are listed; a node that is listed without the cable to it has it all the same.
  void check_ends() {
    struct Missing {
      std::size_t node;
      IbFabric::Port port;
    };
    std::vector<Missing> missing;
    for (const IbFabric::Node& node : fabric_.nodes) {
      for (const auto& [number, port] : node.ports) {
        const auto to = by_id_.find(port.to);
        if (to == by_id_.end())
          throw InputError(port.place, "leads to " + excerpt(port.to) + ", which is not listed; expected all of the output");
        const auto& ports = fabric_.nodes[to->second].ports;
        const auto back = ports.find(port.to_number);
        if (back == ports.end()) {
          missing.push_back(
              {to->second,
               {.number = port.to_number, .to = node.id, .to_number = number, .gbps = port.gbps, .place = port.place}});
        } else if (back->second.to != node.id || back->second.to_number != number) {
          throw InputError(port.place, "leads to port " + std::to_string(port.to_number) + " of " + excerpt(port.to) +
                                           ", which leads elsewhere (line " + std::to_string(back->second.place.line) +
                                           "); expected both ends of a cable to agree");
        }
      }
    }
    for (const Missing& one : missing) fabric_.nodes[one.node].ports.emplace(one.port.number, one.port);
  }
};

}  // namespace

double gbps_of_link(std::string_view link) {
  const std::size_t times = link.find('x');
  if (times == std::string_view::npos) return 0;
  int lanes = 0;
  std::from_chars(link.data(), link.data() + times, lanes);
  const auto rate = std::ranges::find(ib_rates, link.substr(times + 1), &IbRate::name);
  return rate == ib_rates.end() ? 0 : lanes * rate->gbps;
}

IbFabric parse_ibnetdiscover(const std::string& text, const std::string& file) { return IbReader(text, file).read(); }

}  // namespace tandem::studies
