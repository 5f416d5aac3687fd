#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::errors_test {
namespace {

/// One line of the base scenario, replaced. An @ stands where the error must point; it is taken out before parsing.
struct Broken {
  std::string name;
  std::string line;
  std::vector<std::string> words;  ///< all of which the message must hold
  std::string beside = {};         ///< another line, replaced as well
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.line; }

class ScenarioErrors : public testing::TestWithParam<Broken> {};

std::size_t index_of_section(const std::vector<std::string>& lines, const std::string& line) {
  const std::size_t start = line.starts_with('@') ? 1 : 0;
  const std::string section = line.substr(start, line.find(':') + 1 - start);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].starts_with(section)) return i;
  ADD_FAILURE() << "no line for " << section;
  return 0;
}

TEST_P(ScenarioErrors, NameThePlaceAndTheRemedy) {
  std::vector<std::string> lines = base_lines();
  const Broken& broken = GetParam();
  const std::size_t index = index_of_section(lines, broken.line);
  if (!broken.beside.empty()) lines[index_of_section(lines, broken.beside)] = broken.beside;
  const std::size_t at = broken.line.find('@');
  ASSERT_NE(at, std::string::npos);
  lines[index] = broken.line;
  lines[index].erase(at, 1);
  try {
    parse_scenario(joined_lines(lines), "s.yaml", {});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, testing::StartsWith("s.yaml:" + std::to_string(index + 1) + ":" + std::to_string(at + 1) + ": "));
    for (const std::string& word : broken.words) EXPECT_THAT(message, testing::HasSubstr(word));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

const Broken fields[] = {
    {"UnknownField", "parallelism: {@tpp: 4}", {"`tpp`", "did you mean `tp`?"}},
    {"UnknownFieldFarFromAll", "faults: {@meteorite: 1}", {"no field `meteorite`", "expected one of: slow_gpu, dead_link"}},
    {"UnknownLongName", "parallelism: {@tensor_model_paralel_size: 4}", {"did you mean `tensor_model_parallel_size`?"}},
    {"UnknownArchitecture",
     "cluster: {preset: dgx-h100, gpus: 32, gpu: {architecture: @kepler, memory_GiB: 80, memory_bandwidth_GBps: 1}}",
     {"kepler", "ampere", "hopper"}},
    {"NvlsIsYesOrNo", "cluster: {preset: dgx-h100, gpus: 32, nvls: @7}", {"nvls", "true or false"}},
    {"SameFieldTwice", "parallelism: {tp: 4, pp: 2, @tp: 4}", {"`tp` is given twice"}},
    {"SameFieldUnderTwoNames", "parallelism: {tp: 4, @tensor_model_parallel_size: 4}", {"are the same field"}},
    {"MissingField", "training: @{global_batch: 16}", {"training.sequence is missing", "a whole number from 1 to"}},
    {"ListForANumber", "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: @[1]}", {"vocab is a list"}},
    {"TextForANumber", "parallelism: {tp: @four}", {"parallelism.tp is `four`", "a whole number from 1 to 1,048,576"}},
    {"QuotedNumber", "parallelism: {tp: @\"4\"}", {"is the text `4`", "a whole number"}},
    {"FractionForAWholeNumber", "parallelism: {tp: @4.5}", {"`4.5`", "a whole number"}},
    {"NothingForANumber", "parallelism: {tp: @~}", {"is nothing", "a whole number"}},
    {"ListForASection", "parallelism: @[tp, 4]", {"parallelism is a list, expected a mapping of: tp, sp"}},
    {"TextForABoolean", "parallelism: {tp: 4, sp: @yes}", {"`yes`", "true or false"}},
    {"Zero", "parallelism: {tp: @0}", {"is `0`", "from 1"}},
    {"Negative", "training: {sequence: @-1024, global_batch: 16}", {"is `-1024`", "from 1"}},
    {"TooManyGpus", "cluster: {preset: dgx-h100, gpus: @1000000000000}", {"`1000000000000`", "1,048,576"}},
    {"MoreThan64Bits", "cluster: {preset: dgx-h100, gpus: @99999999999999999999}", {"`99999999999999999999`", "1,048,576"}},
    {"NotANumber", "cluster: {preset: dgx-h100, gpus: 32, nic_gbps: @.nan}", {"`.nan`", "a number from"}},
    {"PlainNan", "cluster: {preset: dgx-h100, gpus: 32, nic_gbps: @nan}", {"`nan`", "a number from"}},
    {"Infinite", "cluster: {preset: dgx-h100, gpus: 32, nic_gbps: @inf}", {"`inf`", "a number from"}},
    {"OutOfDoubleRange", "cluster: {preset: dgx-h100, gpus: 32, nic_gbps: @1e999}", {"`1e999`", "a number from"}},
    {"UnknownValue", "training: {sequence: 1024, global_batch: 16, schedule: @1f1v}", {"did you mean `1f1b`?"}},
    {"AnotherNameOfASchedule",
     "training: {sequence: 1024, global_batch: 16, schedule: @afab}",
     {"cannot be `afab`", "did you mean `gpipe`"}},
    {"MambaGroupsThatDoNotDivideItsHeads",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [mamba], mamba: {heads: 12, groups: @8}}",
     {"groups 8 does not divide heads 12 of Mamba", "6, 12"}},
    {"MambaWithoutLayersOfIt",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mamba: @{heads: 16}}",
     {"model.mamba without layers of type mamba", "expected those, too"}},
    {"LayersOfMambaWithoutSizes",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: @[mamba]}",
     {"layers of type mamba without model.mamba"}},
    {"MambaThatSeesWhatComesLater",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [mamba], mamba: {heads: 16}, causal: "
     "@false}",
     {"causal false with layers of type mamba"}},
    {"MambaGroupsThatTpDoesNotDivide",
     "parallelism: {tp: @4, sp: true, pp: 2, dp: 4}",
     {"tp 4 does not divide 2 mamba.groups"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [mamba], mamba: {heads: 16, groups: 2}}"},
    {"MambaHeadsThatCpDoesNotDealOut",
     "parallelism: {tp: 2, sp: true, pp: 2, cp: @8}",
     {"cp 8 does not divide the 4 mamba.heads of a tensor-parallel rank"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [mamba], mamba: {heads: 8, groups: 2}}"},
    {"KeyHeadsThatDoNotDivideValueHeads",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [linear_attention], linear_attention: "
     "{key_heads: @8, value_heads: 12}}",
     {"key_heads 8 does not divide value_heads 12 of linear attention", "6, 12"}},
    {"KeyHeadsThatTpDoesNotDivide",
     "parallelism: {tp: @4, sp: true, pp: 2, dp: 4}",
     {"tp 4 does not divide 2 linear_attention.key_heads"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [linear_attention], linear_attention: "
     "{key_heads: 2, value_heads: 16}}"},
    {"LightningHeadsThatTpDoesNotDivide",
     "parallelism: {tp: @4, sp: true, pp: 2, dp: 4}",
     {"tp 4 does not divide 6 lightning_attention.heads"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [lightning_attention], lightning_attention: "
     "{heads: 6}}"},
    {"LightningHeadsThatCpDoesNotDealOut",
     "parallelism: {tp: 2, sp: true, pp: 2, cp: @8}",
     {"cp 8 does not divide the 4 lightning_attention.heads of a tensor-parallel rank"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [lightning_attention], lightning_attention: "
     "{heads: 8}}"},
    {"LayersOfLightningAttentionWithoutSizes",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: @[lightning_attention]}",
     {"layers of type lightning_attention without model.lightning_attention"}},
    {"LightningAttentionThatSeesWhatComesLater",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, layer_types: [lightning_attention], lightning_attention: "
     "{heads: 8}, causal: @false}",
     {"causal false with layers of type lightning_attention"}},
    {"ResidualFactorsWithDropout",
     "training: {sequence: 1024, global_batch: 16, hidden_dropout: @0.1}",
     {"training.hidden_dropout is not lowered with factors of model.residual, expected 0"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, residual: {mlp_alpha: 2}}"},
    {"UnknownModel", "model: @llama3-450b", {"no model preset `llama3-450b`", "did you mean `llama3-405b`?"}},
    {"UnknownCluster", "cluster: {preset: @dgx-h10, gpus: 32}", {"no cluster preset `dgx-h10`", "did you mean `dgx-h100`?"}},
    {"UnknownGpu", "cluster: {preset: dgx-h100, gpus: 32, gpu: @h100}", {"no GPU preset `h100`"}},
    {"Tag", "name: @!!str base", {"tag", "expected a plain value"}},
    {"KeyThatIsNoName", "parallelism: {? @[tp] : 4}", {"a key that is not plain text"}},
    {"EmptyCluster", "@cluster:", {"cluster.gpu is missing"}},
};
INSTANTIATE_TEST_SUITE_P(Fields, ScenarioErrors, testing::ValuesIn(fields), [](const auto& test) { return test.param.name; });

const Broken conflicts[] = {
    {"Heads", "parallelism: {tp: @3}", {"tp 3 does not divide 8 heads; nearest that do: 2, 4"}},
    {"KeyValueHeads",
     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: @3, ffn: 1024, vocab: 4096}",
     {"kv_heads 3 does not divide heads 8; nearest that do: 2, 4"}},
    {"UnevenlySharedKeyValueHeads",
     "parallelism: {tp: @6}",
     {"tp 6 above kv_heads 4 is not a multiple of it", "nearest that are: 4, 8"},
     "model: {layers: 8, hidden: 512, heads: 12, kv_heads: 4, head_dim: 64, ffn: 1536, vocab: 4104}"},
    {"HiddenByHeads",
     "model: {layers: 8, hidden: 512, heads: @7, ffn: 1024, vocab: 4096}",
     {"heads 7 does not divide hidden 512"}},
    {"OddHeadDimension", "model: {layers: 8, hidden: 512, heads: 8, head_dim: @63, ffn: 1024, vocab: 4096}", {"odd", "62, 64"}},
    {"Vocabulary",
     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: @4098}",
     {"vocab 4098 is not a multiple of tp 4; nearest that are: 4096, 4100"}},
    {"SequenceParallel", "training: {sequence: @1022, global_batch: 16}", {"not a multiple of tp 4", "1020, 1024"}},
    {"OverlapWithoutSequenceParallel",
     "training: {sequence: 1024, global_batch: 16, overlap: {tp: @true}}",
     {"overlap.tp without sp", "expected parallelism.sp true"},
     "parallelism: {tp: 4, pp: 2, dp: 4}"},
    {"HiddenExchangesWithoutPairs",
     "training: {sequence: 1024, global_batch: 16, overlap: {ep: @true}}",
     {"overlap.ep with schedule 1f1b and pp 2", "expected schedule interleaved-1f1b or dualpipe, or overlap.ep false"}},
    {"HiddenExchangesWithGatheredWeights",
     "training: {sequence: 1024, global_batch: 32, schedule: dualpipe, overlap: {ep: @true}}",
     {"overlap.ep with zero 3", "expected zero 2 or less"},
     "parallelism: {tp: 4, pp: 2, zero: 3}"},
    {"LearnedPositions",
     "model: @{layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, rotary: false}",
     {"model.max_positions is missing"}},
    {"ReplicasDoNotFill", "parallelism: {tp: 4, pp: 2, dp: @3}", {"makes 24 ranks for 32 GPUs, expected dp 4"}},
    {"ReplicaLargerThanCluster",
     "cluster: {preset: dgx-h100, gpus: @4}",
     {"tp 4 * pp 2 * cp 1 = 8 does not divide 4 GPUs", "divides: 8"}},
    {"ReplicasAndARest", "cluster: {preset: dgx-h100, gpus: @36}", {"does not divide 36 GPUs", "32, 40"}},
    {"NodesAndARest",
     "cluster: {preset: dgx-h100, gpus: @32, gpus_per_node: 6, nics_per_node: 6}",
     {"nodes of 6; nearest that do: 30, 36"}},
    {"UnevenNics", "cluster: {preset: dgx-h100, gpus: 32, nics_per_node: @3}", {"3 NICs", "nearest that can: 2, 4"}},
    {"ClusterWithoutNics", "cluster: {preset: host, gpus: @32, gpus_per_node: 16}", {"no NICs", "at most 16"}},
    {"LayersOverStages",
     "parallelism: {tp: 2, pp: @16}",
     {"8 layers do not divide over pp 16 * vpp 1 = 16 model chunks; nearest pp * vpp that they do: 8"}},
    {"VppWithoutInterleaving", "parallelism: {tp: 4, pp: 2, vpp: @2}", {"without schedule interleaved-1f1b"}},
    {"InterleavingWithoutVpp",
     "training: {sequence: 1024, global_batch: 16, schedule: @interleaved-1f1b}",
     {"vpp 1", "expected vpp 2"}},
    {"Batch",
     "training: {sequence: 1024, micro_batch: 1, global_batch: @18}",
     {"global_batch 18 is not a multiple of dp 4 * micro_batch 1; nearest that are: 16, 20"}},
    {"OrderTwice", "parallelism: {tp: 4, pp: 2, order: [tp, cp, @tp, dp, pp]}", {"names tp twice"}},
    {"OrderShort", "parallelism: {tp: 4, pp: 2, order: @[tp, cp, dp, pp]}", {"names 4 axes", "tp, cp, ep, dp, pp once"}},
    {"OrderUnknown", "parallelism: {tp: 4, pp: 2, order: [tp, @xp, ep, dp, pp]}", {"cannot be `xp`"}},
    {"SlowGpuOutsideTheCluster", "faults: {slow_gpu: {rank: @32, factor: 0.5}}", {"rank 32 does not exist", "0 to 31"}},
    {"SecondSlowGpuOutside", "faults: {slow_gpu: [{rank: 1, factor: 0.5}, {rank: @40, factor: 0.5}]}", {"rank 40"}},
    {"SlowGpuTwice", "faults: {slow_gpu: [{rank: 1, factor: 0.5}, @{rank: 1, factor: 0.7}]}", {"rank 1 ", "twice"}},
    {"StoppedGpu", "faults: {slow_gpu: {rank: 1, factor: @0}}", {"factor is `0`"}},
    {"Oversubscription", "cluster: {preset: dgx-h100, gpus: 32, fabric: {oversubscription: @[1, 7]}}", {"lists 2", "tiers 3"}},
    {"NegativeOversubscription", "cluster: {preset: dgx-h100, gpus: 32, fabric: {oversubscription: [1, 1, @-7]}}", {"`-7`"}},
    {"GemmTile",
     "cluster: {preset: dgx-h100, gpus: 32, gpu: {preset: h100-sxm-80gb, efficiency: {gemm: {bf16: {tiles: [64x64, @128]}}}}}",
     {"cluster.gpu.efficiency.gemm.bf16.tiles holds `128`", "such as 128x256"}},
    {"AttentionRates",
     "cluster: {preset: dgx-h100, gpus: 32, gpu: {preset: h100-sxm-80gb, efficiency: {attention: {cudnn: {forward: {rate: "
     "@[0.5]}}}}}}",
     {"has 1 values", "head dimensions 64, 128 and 256"}},
    {"AttentionKernelThatIsNotStated",
     "cluster: {preset: dgx-a100, gpus: 32, gpu: {preset: a100-80gb, efficiency: {attention: {kernel: @cudnn}}}}",
     {"cluster.gpu.efficiency.attention.kernel is cudnn", "not stated"}},
    {"Efficiency", "cluster: {preset: dgx-h100, gpus: 32, nic_efficiency: @1.2}", {"a number from 0.001 to 1"}},
    {"OddRotatedPart",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mla: {kv_rank: 64, rope_dim: @7, nope_dim: 8, v_dim: 8}}",
     {"rope_dim 7 is odd", "6, 8"}},
    {"LatentWithoutRank",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mla: {rope_dim: @8}}",
     {"model.mla.rope_dim without a kv_rank"}},
    {"LatentWithGroupedHeads",
     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: @4, ffn: 1024, vocab: 4096, mla: {kv_rank: 64, rope_dim: 8, nope_dim: "
     "8, "
     "v_dim: 8}}",
     {"kv_heads 4 with latent attention, expected heads, 8"}},
    {"IndexerWithoutLatents",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, indexer: @{heads: 4}}",
     {"model.indexer without model.mla, expected latent attention"}},
    {"IndexerNarrowerThanItsRotation",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mla: {kv_rank: 64, rope_dim: 8, nope_dim: 8, v_dim: 8}, "
     "indexer: {heads: 4, head_dim: @4}}",
     {"model.indexer.head_dim 4 is less than rope_dim 8"}},
    {"IndexerOverWindows",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mla: {kv_rank: 64, rope_dim: 8, nope_dim: 8, v_dim: 8}, "
     "indexer: {heads: 4}, window: 16, layer_types: @[sliding_attention]}",
     {"sliding or chunked attention with model.indexer", "expected full_attention"}},
    {"IndexerWithoutALoss",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mla: {kv_rank: 64, rope_dim: 8, nope_dim: 8, v_dim: 8}, "
     "indexer: {heads: 4, loss_coefficient: @0}}",
     {"model.indexer.loss_coefficient is `0`"}},
    {"IndexerInARing",
     "parallelism: {tp: 2, pp: 2, cp: 2, cp_method: @ring}",
     {"cp_method ring with model.indexer", "expected all-gather"},
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, mla: {kv_rank: 64, rope_dim: 8, nope_dim: 8, v_dim: 8}, "
     "indexer: {heads: 4}}"},
    {"BiasesOfLatents",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, attention_bias: @qkv, mla: {kv_rank: 64, rope_dim: 8, "
     "nope_dim: 8, v_dim: 8}}",
     {"model.attention_bias is not lowered with model.mla, expected none"}},
    {"GatedAttentionWithBiases",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, attention_bias: qkv, attention_gate: @true}",
     {"model.attention_gate with model.attention_bias"}},
    {"LimitsWithoutGates",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, gated: false, activation_limit: @7}",
     {"activation_limit without gates is not lowered; expected gated true, or 0"}},
    {"NormsOfAllHeadsByLayerNorm",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, norm: layer, qk_norm: @all}",
     {"qk_norm all by LayerNorm with tp 4", "expected norm rms, tp 1, or qk_norm head"}},
    {"GateOfNoSharedExpert",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2, shared_gate: @true}}",
     {"shared_gate without shared_experts"}},
    {"BestOfNoGroup",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2, best_of_group: @1}}",
     {"best_of_group without a node_limit"}},
    {"BiasedExpertsWeightedBefore",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2, linear_bias: @true}}",
     {"model.moe.linear_bias with training.gates_at_experts", "expected gates_at_experts false"},
     "training: {sequence: 1024, global_batch: 16, gates_at_experts: true}"},
    {"NoSuchArithmetic",
     "cluster: {preset: dgx-h100, gpus: 32, gpu: @{preset: h100-sxm-80gb, peak_TFLOPS: {bf16: 0}}}",
     {"no bf16 arithmetic"}},
    {"ReshardingWithoutSlices",
     "parallelism: {tp: 4, zero: 2, reshard_after_forward: @true}",
     {"reshard_after_forward with zero 2, expected zero 3"}},
    {"CompressorMethod", "training: {sequence: 1024, global_batch: 16, grad_compression: @fp8}", {"grad_compression cannot be"}},
    {"CompressionBelowAByte",
     "training: {sequence: 1024, global_batch: 16, grad_dtype: bf16, grad_compression: @4}",
     {"less than a byte", "expected at most 2"}},
    {"Compressor",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: @topk}}",
     {"compressor.method cannot be", "top-k"}},
    {"CompressorRatio",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: top-k, ratio: @0.5}}",
     {"compressor.ratio is `0.5`", "a number from 1"}},
    {"CompressorRatioOfAnotherMethod",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: one-bit, ratio: @100}}",
     {"training.compressor.ratio with method one-bit", "expected method top-k"}},
    {"CompressorRankOfAnotherMethod",
     "training: {sequence: 1024, global_batch: 16, compressor: {rank: @4}}",
     {"training.compressor.rank with method cast", "expected method powersgd"}},
    {"CompressorOfCastGradients",
     "training: {sequence: 1024, global_batch: 16, grad_compression: 2, compressor: {method: @top-k}}",
     {"compressor.method top-k with grad_compression 2", "expected grad_compression 1"}},
    {"CompressorInTwoLevels",
     "training: {sequence: 1024, global_batch: 16, hierarchical_all_reduce: true, compressor: {method: @one-bit}}",
     {"compressor.method one-bit with hierarchical_all_reduce", "at most one of the two"}},
    {"CompressorOfLocalSteps",
     "training: {sequence: 1024, global_batch: 16, sync_every: 4, compressor: {method: @powersgd}}",
     {"compressor.method powersgd with sync_every 4", "at most one of the two"},
     "parallelism: {tp: 4, zero: 0}"},
    {"CompressorOfPlayedPolicies",
     "training: {sequence: 1024, global_batch: 16, sync: {kind: asynchronous}, compressor: {method: @top-k}}",
     {"compressor.method top-k with training.sync", "at most one of the two"},
     "parallelism: {tp: 4, zero: 0}"},
    {"CompressorOfSlices",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: @top-k}}",
     {"compressor.method top-k with zero 2", "expected zero 0 or 1"},
     "parallelism: {tp: 4, zero: 2}"},
    {"CompressorInShardGroups",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: @top-k}}",
     {"compressor.method top-k with hsdp"},
     "parallelism: {tp: 4, pp: 2, zero: 1, hsdp: 2}"},
    {"PowerSgdWithoutArithmetic",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: @powersgd}}",
     {"compressor.method powersgd multiplies gradients in their type, fp32", "peak_TFLOPS.fp32"},
     "cluster: {preset: dgx-h100, gpus: 32, gpu: {preset: h100-sxm-80gb, peak_TFLOPS: {fp32: 0}}}"},
    {"MuonOfSlices",
     "training: {sequence: 1024, global_batch: 16, optimizer: @muon}",
     {"optimizer muon with zero 3", "expected zero 0, 1 or 2"},
     "parallelism: {tp: 4, pp: 2, zero: 3}"},
    {"MuonInShardGroups",
     "training: {sequence: 1024, global_batch: 16, optimizer: @muon}",
     {"optimizer muon with hsdp", "not both"},
     "parallelism: {tp: 4, pp: 2, zero: 1, hsdp: 2}"},
    {"MuonOfCompressedGradients",
     "training: {sequence: 1024, global_batch: 16, compressor: {method: top-k}, optimizer: @muon}",
     {"optimizer muon with compressor.method top-k", "expected compressor.method cast"}},
    {"EncoderOfSequenceParts",
     "parallelism: {tp: 1, cp: @2}",
     {"cp 2 with model.encoder", "expected cp 1"},
     "model: {preset: qwen2-vl-7b}"},
    {"FewLearnedPositions",
     "model: {preset: qwen2-vl-7b, encoder: {learned_positions: @255}}",
     {"encoder.learned_positions 255 are fewer than the 256 rows of an image", "expected 256 at least"}},
    {"ClassTokensOfCutImages",
     "model: {preset: qwen2-vl-7b, encoder: {class_token: @true}}",
     {"encoder.class_token with sp needs images that tp 2 divides", "expected sp false, or other images"},
     "parallelism: {tp: 2, sp: true}"},
    {"UndividedProjector",
     "parallelism: {tp: @2}",
     {"tp 2 does not divide 5121 encoder.projector"},
     "model: {preset: qwen2-vl-7b, encoder: {projector: [5121]}}"},
    {"AdafactorOnTheHost",
     "training: {sequence: 1024, global_batch: 16, optimizer: @adafactor, offload: {optimizer: 0.5}}",
     {"optimizer adafactor with offload.optimizer"},
     "cluster: {preset: dgx-h100, gpus: 32, host: {link_GBps: 50, memory_GBps: 200}}"},
    {"StreamsThatGoOnFromNorms",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, norm_placement: @residual, hyper_connections: {streams: "
     "2}}",
     {"model.norm_placement is not lowered with model.hyper_connections"}},
    {"HashedChoicesWithinGroups",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2, groups: 4, node_limit: 1, "
     "hash_layers: @1}}",
     {"hash_layers with node_limit", "expected hash_layers 0"}},
    {"CompressedKeysWithoutTheirAttention",
     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 1, ffn: 1024, vocab: 4096, window: 8, layer_types: "
     "@[heavily_compressed_attention]}",
     {"layers with compressed keys without model.compressed_attention"}},
    {"CompressedKeysOfEverySequence",
     "training: {sequence: @1000, global_batch: 16}",
     {"sequence 1000 is no multiple of the 128 positions of a compressed key", "896, 1024"},
     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 1, ffn: 1024, vocab: 4096, window: 8, layer_types: "
     "[heavily_compressed_attention], compressed_attention: {q_rank: 64, rope_dim: 16, output_groups: 4, output_rank: 32}}"},
    {"MuonOnTheHost",
     "training: {sequence: 1024, global_batch: 16, optimizer: @muon, offload: {optimizer: 0.5}}",
     {"optimizer muon with offload.optimizer"},
     "cluster: {preset: dgx-h100, gpus: 32, host: {link_GBps: 50, memory_GBps: 200}}"},
    {"ShardGroups", "parallelism: {tp: 4, pp: 2, zero: 3, hsdp: @3}", {"hsdp 3 does not divide", "group of 4"}},
    {"ShardGroupsWithoutSlices", "parallelism: {tp: 4, pp: 2, zero: 0, hsdp: @2}", {"with zero 0", "expected zero 1, 2 or 3"}},
    {"OffloadWithoutHost",
     "training: {sequence: 1024, global_batch: 16, offload: {optimizer: @0.5}}",
     {"offload.optimizer without cluster.host.link_GBps", "cluster.host.memory_GBps, of a node's memory"}},
    {"OffloadWithoutHostMemory",
     "training: {sequence: 1024, global_batch: 16, offload: {optimizer: @0.5}}",
     {"offload.optimizer without cluster.host.memory_GBps"},
     "cluster: {preset: dgx-h100, gpus: 32, host: {link_GBps: 50}}"},
    {"OffloadOfMoreThanAll", "training: {sequence: 1024, global_batch: 16, offload: {optimizer: @1.5}}", {"optimizer is `1.5`"}},
    {"OffloadedActivationsOfASplitBackward",
     "training: {sequence: 1024, global_batch: 16, schedule: zb-h1, offload: {activations: @2}}",
     {"offload.activations with schedule zb-h1"},
     "cluster: {preset: dgx-h100, gpus: 32, host: {link_GBps: 50}}"},
    {"LocalStepsWithSlices",
     "training: {sequence: 1024, global_batch: 16, sync_every: @4}",
     {"sync_every 4 with zero 1", "expected zero 0, or sync_every 1"}},
    {"LocalStepsInTwoLevels",
     "training: {sequence: 1024, global_batch: 16, hierarchical_all_reduce: true, sync_every: @4}",
     {"sync_every 4 with hierarchical_all_reduce", "at most one of the two"},
     "parallelism: {tp: 4, sp: true, pp: 2, dp: 4, zero: 0}"},
    {"LocalStepsOfNone", "training: {sequence: 1024, global_batch: 16, sync_every: @0}", {"sync_every is `0`"}},
    {"PolicyWithSlices",
     "training: {sequence: 1024, global_batch: 16, sync: @{kind: asynchronous}}",
     {"sync asynchronous with zero 1, which spreads a replica's optimizer states over all replicas",
      "expected zero 0, or sync left out"}},
    {"PolicyWithSlicesOfWeights",
     "training: {sequence: 1024, global_batch: 16, sync: @[{kind: synchronous}, {kind: stale, staleness: 1}]}",
     {"sync stale with zero 3, which spreads a replica's weights and optimizer states"},
     "parallelism: {tp: 4, dp: 8, zero: 3}"},
    {"PolicyInTwoLevels",
     "training: {sequence: 1024, global_batch: 16, hierarchical_all_reduce: true, sync: @{kind: asynchronous}}",
     {"which all replicas of a node reduce together", "at most one of the two"},
     "parallelism: {tp: 4, sp: true, pp: 2, dp: 4, zero: 0}"},
    {"PolicyOfOneReplica",
     "training: {sequence: 1024, global_batch: 16, sync: @{kind: asynchronous}}",
     {"with dp 1 there is one; expected dp 2 or more"},
     "parallelism: {tp: 8, pp: 4, dp: 1, zero: 0}"},
    {"PolicyWithLocalSteps",
     "training: {sequence: 1024, global_batch: 16, sync_every: 4, sync: @{kind: asynchronous}}",
     {"expected sync_every 1, and local SGD as `{kind: local, every: 4}` of training.sync"},
     "parallelism: {tp: 4, sp: true, pp: 2, dp: 4, zero: 0}"},
    {"BackupsOfAll",
     "training: {sequence: 1024, global_batch: 16, sync: {kind: backup, backups: @4}}",
     {"4 backup workers among 4 data-parallel replicas", "expected at most 3"},
     "parallelism: {tp: 4, sp: true, pp: 2, dp: 4, zero: 0}"},
    {"BackupsOfMoreThanAll",
     "training: {sequence: 1024, global_batch: 16, sync: @[{kind: asynchronous}, {kind: backup, backups: 9}]}",
     {"9 backup workers among 4 data-parallel replicas"},
     "parallelism: {tp: 4, sp: true, pp: 2, dp: 4, zero: 0}"},
    {"BackupsOfNone", "training: {sequence: 1024, global_batch: 16, sync: {kind: backup, backups: @0}}", {"backups is `0`"}},
    {"BackupWithoutBackups",
     "training: {sequence: 1024, global_batch: 16, sync: @{kind: backup}}",
     {"training.sync.backups is missing"}},
    {"PolicyOfNoKind", "training: {sequence: 1024, global_batch: 16, sync: {kind: @async}}", {"asynchronous"}},
    {"PolicyWithTheSizeOfAnother",
     "training: {sequence: 1024, global_batch: 16, sync: {kind: stale, staleness: 2, backups: @1}}",
     {"training.sync.backups is of kind backup, and this is kind stale"}},
    {"ServersOfARound",
     "training: {sequence: 1024, global_batch: 16, sync: {kind: local, every: 2, servers: @1}}",
     {"training.sync.servers is of kinds stale and asynchronous, and this is kind local"}},
    {"LateOfNobody",
     "training: {sequence: 1024, global_batch: 16, sync: {kind: asynchronous, late: @abandon}}",
     {"training.sync.late is of kind backup, and this is kind asynchronous"}},
    {"PolicyTwice",
     "training: {sequence: 1024, global_batch: 16, sync: [{kind: asynchronous}, @{kind: asynchronous}]}",
     {"lists one policy twice"}},
    {"StepsOfNoPolicy", "training: {sequence: 1024, global_batch: 16, sync_steps: @10}", {"sync_steps without training.sync"}},
    {"HierarchyTwice",
     "training: {sequence: 1024, global_batch: 16, hierarchical_all_reduce: @true}",
     {"works in two levels already"},
     "parallelism: {tp: 4, pp: 2, dp: 4, hsdp: 2}"},
    {"ReshardingKeptWeights",
     "parallelism: {tp: 4, zero: 3, gather_per_micro_batch: false, reshard_after_forward: @true}",
     {"expected at most one"}},
    {"ExpertParallel", "parallelism: {tp: 4, ep: @2}", {"ep 2", "without experts", "model.moe"}},
    {"ExpertTensorParallel", "parallelism: {tp: 4, etp: @2}", {"etp 2", "without experts"}},
    {"TopK",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: @9}}",
     {"top_k 9 is more than the 8 experts"}},
    {"Load",
     "model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2, load: @even}}",
     {"expected uniform, a list of shares by expert, or {zipf: exponent}"}},
};
const Broken pipelines[] = {
    {"ZeroBubbleVWithoutItsArms",
     "training: {sequence: 1024, global_batch: 16, schedule: @zb-v}",
     {"zb-v with vpp 1, expected vpp 2"}},
    {"DualPipeShortOfMicroBatches",
     "training: {sequence: 1024, global_batch: @8, schedule: dualpipe}",
     {"expected an even number of at least 2 * pp = 4"}},
    {"RecomputeOfNoModule", "training: {sequence: 1024, global_batch: 16, recompute: [@mpl]}", {"mlp"}},
    {"RecomputeOfMlaWithoutIt",
     "training: {sequence: 1024, global_batch: 16, recompute: @[mla-up]}",
     {"recompute of mla-up without model.mla"}},
    {"RecomputeTwice", "training: {sequence: 1024, global_batch: 16, recompute: [mlp, @mlp]}", {"names mlp twice"}},
    {"RecomputeEveryOfNothing",
     "training: {sequence: 1024, global_batch: 16, recompute_every: @2}",
     {"recompute_every without recompute full"}},
    {"RecomputeSegmentOfNothing",
     "training: {sequence: 1024, global_batch: 16, recompute_segment: @2}",
     {"recompute_segment without recompute full"}},
    {"RecomputeSegmentOfEverySecond",
     "training: {sequence: 1024, global_batch: 16, recompute: full, recompute_every: 2, recompute_segment: @2}",
     {"recompute_segment with recompute_every, expected one of them"}},
    {"AttentionDropoutOfFusedAttention",
     "training: {sequence: 1024, global_batch: 16, attention_dropout: @0.1}",
     {"attention_dropout is lowered for unfused attention alone, expected 0, or training.attention: unfused"}},
    {"UnevenLayersThatDoNotAddUp",
     "parallelism: {tp: 4, pp: 2, first_stage_layers: @3, last_stage_layers: 4}",
     {"leave 1, but both stages are given, expected a sum of all layers"}},
    {"LayoutOfUnknownLetters",
     "parallelism: {tp: 4, pp: 2, pipeline_layout: @'Ettttt|ttxL'}",
     {"'x', expected E (embedding), t (layer), m (MTP layer), L (loss)"}},
    {"LayoutBesideAnotherSplit",
     "parallelism: {tp: 4, pp: 2, pipeline_layout: @'Ettttt|tttL', account_for_loss: true}",
     {"pipeline_layout excludes account_for_embedding, account_for_loss"}},
    {"LayoutOfFewerStages",
     "parallelism: {tp: 4, pp: 2, pipeline_layout: @t*8}",
     {"pipeline_layout has 1 virtual stages, expected pp 2 * vpp 1 = 2"}},
    {"LayoutWithoutEmbedding",
     "parallelism: {tp: 4, pp: 2, pipeline_layout: @'t*5|tttL'}",
     {"has no E, expected one E, the embedding, at the beginning of the first stage"}},
    {"UnevenLayersOverOneStage", "parallelism: {tp: 4, pp: 1, first_stage_layers: @3}", {"need pp 2 or more"}},
};
INSTANTIATE_TEST_SUITE_P(Pipelines, ScenarioErrors, testing::ValuesIn(pipelines),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Conflicts, ScenarioErrors, testing::ValuesIn(conflicts),
                         [](const auto& test) { return test.param.name; });

const Broken kinds[] = {
    {"Fabric", "cluster: {preset: dgx-h100, gpus: 32, fabric: {kind: @torus}}", {"supported: fat-tree, dragonfly+"}},
    {"TimeBetweenFailures", "faults: {mtbf: @1000}", {"faults.mtbf is `1000`, expected a mapping of: gpu_hours"}},
    {"Jitter", "faults: {jitter: @0.1}", {"faults.jitter is `0.1`, expected a mapping of: kernel, rank"}},
    {"JitterOfKernels", "faults: {jitter: {kernel: @measured}}", {"no profile says how much kernels vary on h100-sxm-80gb"}},
};
INSTANTIATE_TEST_SUITE_P(Kinds, ScenarioErrors, testing::ValuesIn(kinds), [](const auto& test) { return test.param.name; });

TEST(ScenarioErrors, Fp8NeedsAGpuThatHasIt) {
  EXPECT_EQ(parse_scenario(base_text(), "s.yaml", {"training.precision=fp8"}).training.precision, DType::f8);
  try {
    parse_scenario(base_text(), "s.yaml", {"training.precision=fp8", "cluster={preset: dgx-a100, gpus: 32}"});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("a100-80gb has no fp8 arithmetic"));
  }
}

const Broken precisions[] = {
    {"RecipeOfAnotherPrecision",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, recipe: @nvfp4}",
     {"recipe nvfp4 with precision fp8", "expected precision fp4, or recipe delayed, current, blockwise or mxfp8"}},
    {"RecipeOfNoFp4",
     "training: {sequence: 1024, global_batch: 16, precision: fp4, recipe: @mxfp8}",
     {"recipe mxfp8 with precision fp4", "expected precision fp8, or recipe nvfp4"},
     "cluster: {preset: dgx-b200, gpus: 32}"},
    {"RecipeTwice",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, recipe: mxfp8, @fp8_recipe: mxfp8}",
     {"fp8_recipe", "are the same field"}},
    {"Fp4OfHopper", "training: {sequence: 1024, global_batch: 16, precision: @fp4}", {"h100-sxm-80gb has no fp4 arithmetic"}},
    {"Bf16LayersOfBf16",
     "training: {sequence: 1024, global_batch: 16, first_last_layers_bf16: @true}",
     {"first_last_layers_bf16 with precision bf16", "expected precision fp8 or fp4"}},
    {"ParametersGatheredInFp4OfFp8",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, fp4_param_gather: @true}",
     {"fp4_param_gather with precision fp8", "expected precision fp4, or false"}},
    {"ParametersGatheredInFp8OfZero3",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, fp8_param_gather: @true}",
     {"fp8_param_gather with zero 3", "expected zero 1 or 2"},
     "parallelism: {tp: 4, zero: 3}"},
    {"AttentionInFp8OfBf16",
     "training: {sequence: 1024, global_batch: 16, fp8_attention: @true}",
     {"fp8_attention with precision bf16", "expected precision fp8 or fp4"}},
    {"AttentionInFp8OfBlocks",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, recipe: blockwise, fp8_attention: @true}",
     {"fp8_attention with recipe blockwise", "expected another recipe"}},
    {"UnfusedAttentionInFp8",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, attention: unfused, fp8_attention: @true}",
     {"fp8_attention with unfused attention", "expected a fused one"}},
    {"HeadInFp8OfBf16",
     "training: {sequence: 1024, global_batch: 16, fp8_output_proj: @true}",
     {"fp8_output_proj with precision bf16", "expected precision fp8 and recipe mxfp8, or false"}},
    {"HeadInFp8OfOneScale",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, fp8_output_proj: @true}",
     {"fp8_output_proj with recipe delayed", "expected precision fp8 and recipe mxfp8, or false"}},
    {"TiedHeadInFp8",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, recipe: mxfp8, fp8_output_proj: @true}",
     {"fp8_output_proj with tied_embeddings", "expected one of the two"},
     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096, tied_embeddings: true}"},
    {"Bf16LayersOfDelayedScales",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, first_last_layers_bf16: @true}",
     {"first_last_layers_bf16 with recipe delayed", "expected another recipe"}},
    {"MaximaOfCurrentScales",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, recipe: current, tp_only_amax_red: @true}",
     {"tp_only_amax_red with recipe current", "expected precision fp8 and recipe delayed, or false"}},
    {"MaximaOfBf16",
     "training: {sequence: 1024, global_batch: 16, tp_only_amax_red: @true}",
     {"tp_only_amax_red with precision bf16"}},
    {"Bf16LayersBeyondTheModel",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, recipe: current, first_last_layers_bf16: true, "
     "num_layers_at_end_in_bf16: @1000}",
     {"1000 at the end in bf16 of a model with", "expected no more than it has"}},
    {"Bf16LayersWithoutSayingSo",
     "training: {sequence: 1024, global_batch: 16, precision: fp8, num_layers_at_end_in_bf16: @4}",
     {"num_layers_at_end_in_bf16 without first_last_layers_bf16"}},
    {"ProductsLikeThoseOfNoType",
     "cluster: {preset: dgx-b200, gpus: 32, gpu: {preset: b200, efficiency: {gemm: {fp4: {as: @fp7}}}}}",
     {"as is `fp7`", "expected another type whose products are stated by tiles"}},
};
INSTANTIATE_TEST_SUITE_P(Precisions, ScenarioErrors, testing::ValuesIn(precisions),
                         [](const auto& test) { return test.param.name; });

TEST(ScenarioErrors, LocalStepsNeedWholeReplicas) {
  const std::string mesh = "parallelism={tp: 2, sp: true, pp: 1, cp: 2, dp: 8, ep: 4, zero: 0";
  const std::vector<std::string> options{"training.sync_every=8", "model.moe={experts: 8, top_k: 2}"};
  const auto parse = [&](const std::string& override) {
    std::vector<std::string> all = options;
    all.push_back(override);
    return parse_scenario(base_text(), "s.yaml", all);
  };
  EXPECT_EQ(parse(mesh + "}").training.sync_every, 8);
  EXPECT_EQ(parse(mesh + ", order: [cp, ep, tp, dp, pp]}").training.sync_every, 8);
  for (const char* apart : {", order: [dp, tp, cp, ep, pp]}", ", order: [tp, dp, cp, ep, pp]}", ", etp: 2}"}) {
    try {
      parse(mesh + apart);
      FAIL() << "accepted" << apart;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("several data-parallel replicas"));
      EXPECT_THAT(error.what(), testing::HasSubstr("expected etp * ep to divide"));
    }
  }
}

TEST(ScenarioErrors, TheBaseItselfIsValid) { EXPECT_EQ(parse_scenario(base_text(), "s.yaml", {}).parallelism.dp, 4); }

}  // namespace
}  // namespace tandem::scenarios::errors_test
