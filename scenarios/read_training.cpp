#include <cmath>

#include "scenarios/reader.h"
#include "scenarios/sections.h"

namespace tandem {
namespace {

void read_overlap(const YamlNode& node, TrainingSpec& spec) {
  const Reader overlap(node, "training.overlap", {"dp", "tp", "pp"});
  spec.overlap_dp = overlap.boolean("dp", true);
  spec.overlap_tp = overlap.boolean("tp", false);
  spec.overlap_pp = overlap.boolean("pp", true);
  if (spec.overlap_tp) overlap.fail("tp", "training.overlap.tp true is not lowered yet; supported: false");
}

Recompute read_recompute(const Reader& training) {
  if (training.child("recompute").kind == YamlNode::Kind::sequence)
    training.fail("recompute", "training.recompute as a list of modules is not lowered yet; supported: none, selective, full");
  return training.choice<Recompute>(
      "recompute", {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}}, Recompute::none);
}

std::string read_framework(const Reader& training) {
  return training.choice<std::string>("framework",
                                      {{"generic", "generic"},
                                       {"megatron-2021", {}},
                                       {"megatron-2022", {}},
                                       {"megatron-core", {}},
                                       {"megatron-deepspeed", {}},
                                       {"deepspeed", {}},
                                       {"nemo", {}},
                                       {"torchtitan", {}},
                                       {"llm-foundry", {}},
                                       {"llama3", {}},
                                       {"deepseek", {}}},
                                      "generic");
}

}  // namespace

TrainingSpec read_training(const YamlNode& node) {
  const Reader training(node, "training",
                        {"sequence", "micro_batch", "global_batch", "precision", "schedule", "recompute", "overlap", "grad_dtype",
                         "framework", "bucket_MB", "sync_every", "grad_compression", "hierarchical_all_reduce"});
  TrainingSpec spec;
  spec.sequence = training.integer("sequence", {1, 16'777'216});
  spec.micro_batch = training.integer("micro_batch", {1, 4'096}, 1);
  spec.global_batch = training.integer("global_batch", {1, 16'777'216});
  spec.precision = training.choice<DType>(
      "precision", {{"bf16", DType::bf16}, {"fp16", DType::f16}, {"fp32", DType::f32}, {"fp8", DType::f8}}, DType::bf16);
  spec.grad_dtype =
      training.choice<DType>("grad_dtype", {{"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}}, DType::f32);
  spec.schedule = training.choice<ScheduleKind>("schedule",
                                                {{"gpipe", ScheduleKind::gpipe},
                                                 {"1f1b", ScheduleKind::one_f_one_b},
                                                 {"interleaved-1f1b", ScheduleKind::interleaved},
                                                 {"zb-h1", ScheduleKind::zero_bubble_h1},
                                                 {"zb-v", {}},
                                                 {"dualpipe", {}}},
                                                ScheduleKind::one_f_one_b);
  spec.recompute = read_recompute(training);
  spec.framework = read_framework(training);
  read_overlap(training.child("overlap"), spec);
  if (training.has("bucket_MB")) {
    const double bucket_bytes = training.number("bucket_MB", {1e-3, 1e9}) * 1e6;
    spec.bucket_parameters = std::llround(bucket_bytes / static_cast<double>(size_of(spec.grad_dtype)));
  }
  spec.hierarchical_all_reduce = training.boolean("hierarchical_all_reduce", false);
  spec.grad_compression = training.choice<std::int64_t>("grad_compression", {{"1", 1}, {"2", 2}, {"4", 4}}, 1);
  training.not_yet({"sync_every"});
  return spec;
}

}  // namespace tandem
