#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Whether Muon updates the tensor: a matrix inside the layers, or of what predicts further tokens. Adam updates the token and
/// position tables and the head, the gates that end several residual streams, norms, biases, short convolutions and what each
/// head has one number of (Liu et al. 2025, arXiv 2502.16982, section 2.2). By its name: the numbers of layers and depths stand
/// before a dot.
bool is_muon_matrix(const std::string& tensor);

/// Updates one matrix that this rank owns (runtime/ops/muon.h): its whole, or its shard where tensor-parallel ranks (of an
/// expert: those that share it out) each hold a part. Queries, keys, values, gates and values of an MLP, and the matrices of each
/// expert are orthogonalized by themselves. Shards work on X together, without gathering it:
///
///   rows here       A = X^T X [columns, columns], summed over the shards;   X = X P
///   columns here    A = X X^T [rows, rows], summed over the shards;         X = P X
///
/// which is Megatron-Core's `--muon-tp-mode distributed`. A tensor with fewer rows than columns that is shared out by rows, as
/// keys and values of few heads are, would have A of the larger side: its direction is gathered, and every shard computes the
/// whole.
///
/// Where several ranks hold the same shard, X is sqrt(of them) times too large everywhere, and so is its norm: the sums count
/// every shard as often, and the result is too small by sqrt(of them), which the step makes good.
///
/// With `training.muon_tp: blockwise` a shard is a matrix of its own instead, and ranks exchange nothing (TensorParallelMuon of
/// Megatron-Core, `--muon-tp-mode blockwise`); sizes below are then the shard's. That is another step than the unsharded model's:
/// its reference orthogonalizes the same blocks of each whole matrix (`muon_blocks`).
///
/// A step is learning_rate * 0.2 sqrt(max(rows, columns)) of the unsharded matrix, as large as Adam's (Liu et al., section 2.2).
void update_by_muon(Context& context, const Bucket& bucket, const MuonMatrix& matrix, BufferId norm);

}  // namespace tandem::scenarios
