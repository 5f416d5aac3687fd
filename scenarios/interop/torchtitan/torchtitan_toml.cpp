#include <spdlog/fmt/fmt.h>

#include "scenarios/interop/export_text.h"
#include "scenarios/interop/torchtitan/torchtitan_job.h"

namespace tandem::scenarios {
namespace {

class TomlWriter {
 public:
  explicit TomlWriter(TitanJob job) : job_(std::move(job)) {}

  Exported all() {
    out_.comment(job_.description + " for TorchTitan 0.2");
    out_.line("");
    section("job");
    out_.line(fmt::format("description = \"{}\"", escaped(job_.description)));
    model();
    training();
    section("parallelism");
    for (const auto& [key, value] : job_.parallelism) out_.line(key + " = " + literal(value));
    if (pipelined()) add("pipeline_parallel_microbatch_size", job_.micro_batch);
    checkpointing();
    if (job_.overlap_tp) {
      section("compile");
      out_.line("enable = true  # which asynchronous tensor parallelism needs");
      out_.line("components = [\"model\", \"loss\"]");
    }
    for (Lost& lost : job_.lost) out_.lose(std::move(lost.field), std::move(lost.why));
    return out_.take();
  }

 private:
  TitanJob job_;
  ExportText out_;

  void section(const char* name) { out_.line(fmt::format("\n[{}]", name)); }
  void add(const char* key, std::int64_t value) { out_.line(fmt::format("{} = {}", key, value)); }
  void add(const char* key, std::string_view value) { out_.line(fmt::format("{} = \"{}\"", key, value)); }

  static std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text)
      out += c == '"' || c == '\\' ? std::string{'\\', c} : static_cast<unsigned char>(c) < 0x20 ? "?" : std::string{c};
    return out;
  }

  bool pipelined() const {
    for (const auto& [key, value] : job_.parallelism)
      if (key == "pipeline_parallel_degree") return value.number > 1;
    return false;
  }

  static std::string literal(const TitanValue& value) {
    if (value.kind == TitanValue::Kind::number) return std::to_string(value.number);
    if (value.kind == TitanValue::Kind::truth) return value.number != 0 ? "true" : "false";
    return value.kind == TitanValue::Kind::text ? "\"" + value.text + "\"" : modules_literal(value);
  }

  void model() {
    const bool fp8 = job_.precision == DType::f8, mx = fp8 && job_.recipe == Recipe::mxfp8;
    if (job_.precision == DType::f4) out_.lose("training.precision", "its converters know fp8");
    if (!job_.model && !fp8) return;
    section("model");
    if (job_.model) out_.line(fmt::format("name = \"{}\"\nflavor = \"{}\"", job_.model->name, job_.model->flavor));
    if (!fp8) return;
    out_.line(fmt::format("converters = [\"quantize.linear.{}\"]", mx ? "mx" : "float8"));
    section(mx ? "quantize.linear.mx" : "quantize.linear.float8");
    out_.line("filter_fqns = [\"output\"]");
  }

  void training() {
    section("training");
    add("seq_len", job_.sequence);
    add("local_batch_size", pipelined() ? job_.global_batch / job_.replicas : job_.micro_batch);
    add("global_batch_size", job_.global_batch);
    add("mixed_precision_param", job_.fp32 ? "float32" : "bfloat16");
    add("mixed_precision_reduce", "float32");
  }

  void checkpointing() {
    using enum TitanCheckpointing::Mode;
    section("activation_checkpoint");
    const auto [mode, period] = job_.checkpointing;
    if (mode == none || mode == full) return add("mode", mode == full ? "full" : "none");
    add("mode", "selective");
    add("selective_ac_option", mode == operation ? "op" : std::to_string(period));
  }
};

}  // namespace

/// Writes a configuration of TorchTitan 0.2 (torchtitan/config/job_config.py).
Exported torchtitan_toml(const ScenarioWithDocument& read) { return TomlWriter(torchtitan_job(read.scenario)).all(); }

}  // namespace tandem::scenarios
