#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

#include "sim/fluid_network.h"

namespace tandem::sim {
namespace {

namespace s4u = simgrid::s4u;
namespace kernel = simgrid::kernel;

/// Routes every Comm over the links staged before it starts.
///
/// CM02 shares a link in inverse proportion to the latencies of the routes. So all routes have the latency 1, and a flow's own
/// latency is the factor by which the network model is asked to multiply it.
class StagedRoute final : public kernel::routing::NetZoneImpl {
 public:
  std::vector<kernel::resource::StandardLinkImpl*> links;
  Seconds latency = 0;

  explicit StagedRoute(const std::string& name) : NetZoneImpl(name) {}
  void get_local_route(const kernel::routing::NetPoint*, const kernel::routing::NetPoint*, kernel::routing::Route* into,
                       double* route_latency) override {
    into->link_list_ = links;
    if (route_latency != nullptr) *route_latency += 1;
  }
};

/// Later versions than 3.32 moved the setter from the network model to the zone.
template <typename Zone>
void take_latency_from(const StagedRoute& route, Zone& zone) {
  const auto factor = [&route](double, const s4u::Host*, const s4u::Host*, const std::vector<s4u::Link*>&,
                               const std::unordered_set<s4u::NetZone*>&) { return route.latency; };
  if constexpr (requires { zone.set_latency_factor_cb(factor); }) {
    zone.set_latency_factor_cb(factor);
  } else {
    zone.get_network_model()->set_lat_factor_cb(factor);
  }
}

s4u::Engine& configured_engine() {
  const auto on_interrupt = std::signal(SIGINT, SIG_DFL);
  const auto on_fault = std::signal(SIGSEGV, SIG_DFL);
  std::string program = "tandem";
  std::string quiet = "--log=root.thresh:critical";
  std::array<char*, 3> arguments{program.data(), quiet.data(), nullptr};
  int count = 2;
  s4u::Engine& engine = *s4u::Engine::get_instance(&count, arguments.data());
  for (const char* setting : {
           "network/model:CM02",      // no corrective factors: capacities and latencies are taken as given
           "network/optim:Lazy",      // only flows that a change touches are computed anew
           "network/crosstraffic:0",  // no acknowledgements that slow the other direction
           "network/TCP-gamma:1e30",  // no window that caps fast links of long latency
           "surf/precision:1e-12",    // events a picosecond apart are two events
           "maxmin/precision:1e-12",  // a link is full when it is, not five digits before
       }) {
    s4u::Engine::set_config(setting);
  }
  std::signal(SIGINT, on_interrupt);  // SimGrid's own handlers look for actors to report on
  std::signal(SIGSEGV, on_fault);
  return engine;
}

/// By link, the greatest number that divides all its multiplicities; 0 where nothing crosses it. A link of capacity C crossed m
/// times shares like one of capacity C / d crossed m / d times, and SimGrid starts flows with short routes sooner.
std::vector<std::uint32_t> common_divisors(std::size_t links, const std::vector<Communicator>& communicators) {
  std::vector<std::uint32_t> divisors(links, 0);
  const auto include = [&](const std::vector<Crossing>& crossings) {
    for (const Crossing& crossing : crossings) {
      std::uint32_t& divisor = divisors.at(crossing.link);
      divisor = std::gcd(divisor, crossing.multiplicity);
    }
  };
  for (const Communicator& communicator : communicators) {
    for (const Paths& paths : communicator.layout.paths) {
      include(paths.crossings);
      for (const Hop& hop : paths.hops) include(hop.crossings);
    }
  }
  return divisors;
}

/// SimGrid's engine and what runs on it.
struct Engine {
  struct Flow {
    s4u::CommPtr comm;
    FlowId id = 0;
  };
  /// A flow that is to start, and the route that it takes.
  struct Start {
    FlowId id = 0;
    std::size_t lane = 0;
    Seconds latency = 0;
    double bytes = 0;
    std::vector<kernel::resource::StandardLinkImpl*> links;
    BytesPerSecond rate_limit = 0;
  };

  static constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

  explicit Engine(FluidNetwork::Callbacks given) : callbacks(std::move(given)) {}

  FluidNetwork::Callbacks callbacks;
  s4u::Engine& simgrid = configured_engine();
  StagedRoute& route = *new StagedRoute("cluster");  // SimGrid's to delete, like all it makes
  s4u::Host* source = route.create_host("source", {1.0});
  s4u::Host* destination = route.create_host("destination", {1.0});
  std::vector<std::uint32_t> divisors;
  std::vector<kernel::resource::StandardLinkImpl*> links;  ///< null where nothing crosses the link
  /// By lane, a private link of no limit at the head of its flow's route. When a flow begins, SimGrid 3.32 looks for what that
  /// changes from the first link of its route; if another flow has marked that link at the same date, it stops there, and the
  /// flow's other links are shared as if it were not there. A private link is never marked before.
  std::vector<kernel::resource::StandardLinkImpl*> lanes;
  /// By lane, a second private link, which holds a limited flow to its rate; SimGrid 3.32 forgets the rate of a Comm that no
  /// actor sends. A new capacity marks it, and so it cannot be the first of the route.
  std::vector<s4u::Link*> limits;
  std::deque<Flow> flows;  ///< running, finished and free ones; each stays at its address
  std::vector<Flow*> finished;
  std::vector<Flow*> free;
  kernel::timer::Timer* timer = nullptr;

  // A turn of SimGrid takes long, and changes nothing where no flow starts or has an event of its own. So calls before its next
  // event are made without it, and its clock follows when it has something to do.
  Seconds now = 0;              ///< SimGrid's clock, or ahead of it
  Seconds origin = 0;           ///< where it began with what runs
  Seconds called = 0;           ///< the date of the last call, from the origin on
  Seconds event = 0;            ///< before this date no flow has an event of its own
  std::optional<Seconds> due;   ///< the next call
  Seconds called_at = 0;        ///< the same from the origin on
  bool is_calling = false;      ///< what is due is seen to afterwards
  std::vector<Start> to_start;  ///< when SimGrid's clock has come to `now`

  Flow& free_flow() {
    if (free.empty()) return flows.emplace_back();
    Flow& flow = *free.back();
    free.pop_back();
    return flow;
  }

  void start(const Start& start) {
    event = now;
    route.links = start.links;
    if (start.rate_limit > 0) {
      limits[start.lane]->set_bandwidth(start.rate_limit);
      route.links.push_back(limits[start.lane]->get_impl());
    }
    route.latency = start.latency;

    Flow& flow = free_flow();
    flow.id = start.id;
    flow.comm = s4u::Comm::sendto_init();
    flow.comm->set_data(&flow);
    const double whole = std::ceil(start.bytes);
    flow.comm->set_payload_size(static_cast<std::uint64_t>(whole));
    flow.comm->set_source(source);
    flow.comm->set_destination(destination);  // starts it
    if (start.bytes < whole) newest_action().set_remains(start.bytes);
  }

  /// Returns what SimGrid plays the flow by that started last. Of its models, the network's alone has any.
  kernel::resource::Action& newest_action() const {
    for (kernel::resource::Model* model : simgrid.get_all_models())
      if (!model->get_started_action_set()->empty()) return model->get_started_action_set()->back();
    throw std::logic_error("a flow has started, and SimGrid plays none");
  }

  void on_completion(const s4u::Activity& activity) {
    now = s4u::Engine::get_clock();
    Flow* flow = activity.get_data<Flow>();
    finished.push_back(flow);
    callbacks.flow_ended(flow->id);
  }

  void on_timer() {
    timer = nullptr;
    for (Flow* flow : finished) flow->comm.reset();  // SimGrid still used it in `on_completion`
    free.insert(free.end(), finished.begin(), finished.end());
    finished.clear();
    if (s4u::Engine::get_clock() < now) return set_timer();  // on its way there
    now = s4u::Engine::get_clock();
    for (const Start& one : std::exchange(to_start, {})) start(one);
    is_calling = true;
    if (due && *due <= now) call();
    event = next_event();
    while (due && *due < event && to_start.empty()) {
      now = after(now, *due);
      call();
    }
    is_calling = false;
    set_timer();
  }

  void call() {
    called = called_at;
    due.reset();
    callbacks.woken();
  }

  /// The clock at its first turn that is not before `date`.
  static Seconds after(Seconds clock, Seconds date) {
    while (clock < date) clock += date - clock;
    return clock;
  }

  Seconds next_event() const {
    constexpr Seconds indistinct = 1e-11;  // SimGrid takes dates for one that differ by less than a tenth of that
    Seconds left = never;
    for (kernel::resource::Model* model : simgrid.get_all_models()) {
      if (!model->get_finished_action_set()->empty()) return now;
      if (const double of_model = model->next_occurring_event(now); of_model >= 0) left = std::min(left, of_model);
    }
    return now + left - indistinct;
  }

  void set_timer() {
    const Seconds clock = s4u::Engine::get_clock();
    std::optional<Seconds> date = due;
    // SimGrid's clock is a sum of steps. A step to twice its date at most is exact, wherever it begins; before another one, or
    // where flows start, it comes to `now`, by steps that lead there exactly.
    const Seconds next = std::min(event, due.value_or(never));
    if (now > clock && (!to_start.empty() || (next > 1.9 * clock && next < never)))
      date = clock + (now - clock) == now ? now : clock + (now - clock) / 4 * 3;
    if (timer != nullptr) {
      if (date && timer->get_date() == *date) return;
      timer->remove();
      timer = nullptr;
    }
    if (date) timer = kernel::timer::Timer::set(*date, [this] { on_timer(); });
  }
};

class SimGridNetwork final : public FluidNetwork {
 public:
  SimGridNetwork(const NetworkParts& parts, Callbacks callbacks);

  void start(FlowId flow, std::size_t lane, Seconds latency, double bytes, std::span<const Crossing> crossings,
             BytesPerSecond rate_limit) override;
  void wake_at(Seconds date) override;
  Seconds clock() const override;
  void run() override { engine_.simgrid.run(); }
  void begin_anew(Callbacks callbacks) override;

 private:
  Engine engine_;
};

SimGridNetwork::SimGridNetwork(const NetworkParts& parts, Callbacks callbacks) : engine_(std::move(callbacks)) {
  Engine& engine = engine_;
  const std::vector<Link>& links = parts.links;
  engine.divisors = common_divisors(links.size(), parts.communicators);
  engine.links.assign(links.size(), nullptr);
  for (LinkId id = 0; id < links.size(); ++id) {
    if (engine.divisors[id] == 0) continue;
    if (!(links[id].capacity > 0)) throw std::logic_error("link '" + links[id].name + "' is crossed and has no capacity");
    engine.links[id] = engine.route.create_link(std::to_string(id), {links[id].capacity / engine.divisors[id]})->get_impl();
  }
  constexpr BytesPerSecond no_limit = 1e18;
  for (std::size_t lane = 0; lane < parts.lanes; ++lane) {
    engine.lanes.push_back(engine.route.create_link("lane " + std::to_string(lane), {no_limit})->get_impl());
    engine.limits.push_back(engine.route.create_link("limit " + std::to_string(lane), {no_limit}));
  }
  engine.route.get_iface()->seal();
  take_latency_from(engine.route, *engine.route.get_iface());
  s4u::Comm::on_completion_cb([&engine](const s4u::Activity& activity) { engine.on_completion(activity); });
}

void SimGridNetwork::start(FlowId id, std::size_t lane, Seconds latency, double bytes, std::span<const Crossing> crossings,
                           BytesPerSecond rate_limit) {
  Engine& engine = engine_;
  Engine::Start start{
      .id = id, .lane = lane, .latency = latency, .bytes = bytes, .links = {engine.lanes.at(lane)}, .rate_limit = rate_limit};
  for (const Crossing& crossing : crossings) {
    if (crossing.multiplicity == 0) continue;
    start.links.insert(start.links.end(), crossing.multiplicity / engine.divisors[crossing.link], engine.links[crossing.link]);
  }
  if (engine.now > s4u::Engine::get_clock())
    engine.to_start.push_back(std::move(start));
  else
    engine.start(start);
}

void SimGridNetwork::begin_anew(Callbacks callbacks) {
  engine_.callbacks = std::move(callbacks);
  engine_.now = engine_.event = engine_.origin = s4u::Engine::get_clock();
  engine_.called = 0;
}

void SimGridNetwork::wake_at(Seconds date) {
  engine_.called_at = date;
  // Relative dates round: the sum may be before SimGrid's clock, which it refuses.
  engine_.due = std::max(engine_.origin + date, s4u::Engine::get_clock());
  if (!engine_.is_calling) engine_.set_timer();
}

Seconds SimGridNetwork::clock() const {
  return std::max(engine_.now - engine_.origin, engine_.called);  // a call is not early, however the difference is rounded
}

}  // namespace
}  // namespace tandem::sim

extern "C" {
[[gnu::visibility("default")]] tandem::sim::FluidNetwork* tandem_make_network(const tandem::sim::NetworkParts& parts,
                                                                              tandem::sim::FluidNetwork::Callbacks callbacks) {
  return new tandem::sim::SimGridNetwork(parts, std::move(callbacks));
}
}
