#pragma once

#include "scenarios/lowering/gemm_operand.h"

namespace tandem::scenarios {

// The exchange of rows between the ranks that hold a layer's experts.
//
// NCCL moves what it is given: a row for each choice of a token, which a kernel has put into the order of their destinations, and
// back, where another adds up a token's rows. DeepEP (`dispatcher: deepep`; deepseek-ai/DeepEP, csrc/kernels) reads the tokens
// where they lie, sends each once to a rank that holds some of its experts, and adds up on the way back: neither kernel runs.
// Training in fp8, it sends fp8 to the experts, with a scale in fp32 for each 128 elements, and the products' operands need no
// cast of their own; outputs come back as they are (DeepSeek-V3, arXiv 2412.19437, section 3.3.3). What is executed is the same
// for both.

/// The direction of an exchange: to the experts, or from them.
enum class Way {
  dispatch,
  combine
};

/// Rows of tokens and, with `training.gates_at_experts`, a number for each: its gate, or the gradient of that.
struct Rows {
  BufferId rows = no_id;
  BufferId gates = no_id;  ///< [rows, 1], fp32; `no_id`: the rows travel alone
};

/// Returns what the tasks are called that move gates beside the rows of the tasks called `name`.
std::string gates_of(const std::string& name);

/// Exchanges `sent` between all ranks; returns it as it is where there is one rank. An all-to-all is its own way back. Gates
/// travel by an all-to-all of their own, before the rows', as Megatron-Core sends them; with DeepEP in the rows' kernel, and with
/// HybridEP there, too, which sends a number for each expert of a node (csrc/hybrid_ep/hybrid_ep.cu, expert_output_prob).
Rows exchange(Context& context, const Rows& sent, Way way, const std::string& name);

/// With HybridEP, gathers from all ranks what their tokens chose, before they are sent: a byte for each token and expert
/// (deepseek-ai/DeepEP, deep_ep/hybrid_ep_buffer.py, global_routing_map). `gates` [tokens, top_k] travel in its place where the
/// step is executed, and nobody reads them.
void gather_routing(Context& context, BufferId gates);

/// Returns the attributes of the kernels between a token and its rows.
OpAttributes at_exchange(const Context& context);

/// Notes the fp8 operand as which `rows`, which were dispatched, have arrived.
void arrive_in_fp8(Context& context, BufferId rows, OperandRole role, const std::vector<std::int32_t>& by_expert);

}  // namespace tandem::scenarios
