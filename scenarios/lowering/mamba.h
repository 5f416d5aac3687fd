#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct MambaParameters {
  ParameterId in = 0;    ///< to z | x | B | C | dt
  ParameterId conv = 0;  ///< taps and bias of each channel of x | B | C
  ParameterId scan = 0;  ///< A_log | dt_bias | D of each head
  ParameterId norm = 0, out = 0;
};

/// Mamba-2 (Dao & Gu 2024, arXiv 2405.21060) as Megatron-Core lowers it (`mamba_mixer.py` with `use_mamba_mem_eff_path`): one
/// projection, column parallel; a causal convolution of x, B and C; the scan, which applies the gate; a norm by groups; the
/// projection back, row parallel. Heads and groups are sharded over tp.
///
/// The convolution's output is not kept but made again in the backward. With context parallelism all-to-alls, one for each of z,
/// x, B, C and dt, give every rank the whole sequence of some heads, in order, and one brings the scan's output back
/// (`mamba_context_parallel.py`); where a tensor-parallel rank has fewer groups than there are ranks, neighbours have the
/// same one. Each rank adds to the gradients of its heads' parameters alone; the data-parallel reduction adds them up.
MambaParameters declare_mamba(const Context& context, ChunkParameters& parameters, const std::string& layer);

BufferId mamba(Context& context, Tape& tape, const MambaParameters& weights, BufferId x);

}  // namespace tandem::scenarios
