#pragma once

#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/interop.h"

namespace tandem::scenarios {

// NVIDIA NeMo's two ways to describe a run.

/// Reads megatron_*_config.yaml of NeMo 1, or a training configuration of the NeMo-Framework-Launcher: `trainer`, `model` with
/// its fields, `model.optim`, `model.data`.
Imported read_nemo_configuration(const ForeignText& from, YamlNode root);

/// Reads a recipe of NeMo 2 as nemo_run writes it: `_target_: nemo.collections.llm.api.pretrain`, with `model.config`,
/// `trainer.strategy`, `trainer.plugins`, `data`.
Imported read_nemo_recipe(const ForeignText& from, YamlNode root);

/// trainer.num_nodes * trainer.devices, 0 where one of them is no number.
std::int64_t nemo_gpus(ForeignTree& tree);

/// Puts parallelism.dp where nobody said how many GPUs run it, and notes where --gpus says otherwise. Throws InputError where the
/// ranks of a replica do not divide the file's GPUs.
void put_nemo_gpus(Imported& imported, ForeignTree& tree, const ForeignText& from);

}  // namespace tandem::scenarios
