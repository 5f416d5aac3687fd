// What the binary puts into the page: `<script type="application/json" id="report">`. All in SI units: seconds, bytes, FLOP/s,
// bytes/s. `result` is what --json holds, unchanged, so that a page and a file can be compared.

export type Axis = "tp" | "cp" | "ep" | "pp" | "dp";
export type Phase = "forward" | "backward-input" | "backward-weight" | "recompute" | "optimizer";

export type Report = StepReport | CrosscheckReport | StudyReport | DiffReport | ValidationReport | FailureReport;

export interface Head {
  tandem: string; // version
  title: string; // the scenario's name, or the study's
  command: string; // that made the page
}

// ---- the JSON result (see docs/json.md) ---------------------------------------------------------------------------------------

export interface Result {
  scenario: string;
  gpus: number;
  gpu: string;
  tokens: number; // of a step
  step_time_s: number;
  tokens_per_s_per_gpu: number;
  model_tflops_per_gpu: number;
  mfu: number;
  hfu: number;
  bubble_fraction: number;
  time_s: Parts; // mean over ranks; the parts add up to step_time_s
  stages_s: StageTime[];
  kinds: KindTime[];
  memory: {
    peak_bytes: number;
    gpu_bytes: number;
    fits: boolean;
    allocated_bytes?: number; // of the fullest rank, as PyTorch counts; absent in results of older versions, as the next two
    reserved_bytes?: number;
    device_bytes?: number; // with NCCL's buffers and CUDA's context
    stages: StageMemory[];
  };
  // From here to `layers`: absent in results of older versions.
  parameters?: {total: number; active: number};
  communication?: Communication; // of a rank, mean over all
  intensity?: {flops: number; memory_bytes: number; flops_per_byte: number; ridge_flops_per_byte: number};
  layers?: LayerTraffic[];
  experts?: ExpertBalance; // out of balance, or choosing
  bounds_s: {lower: number; upper: number};
  interval_s?: StepInterval; // simulated steps, of versions that tell its parts
  warnings: string[];
  run: {
    ranks: number;
    rank_classes: number;
    link_classes: number;
    tasks: number;
    wall_s: number;
    peak_rss_bytes: number;
    backend: "simgrid" | "host" | "cuda";
    folded: boolean;
  };
}

export interface StepInterval {
  low: number;
  high: number;
  shares?: Record<string, number>; // of the squared width
  known_from?: {class: string; runs: number; sources: number};
  give_or_take_if_measured?: Record<Measurement, number>; // high over the step time, less 1
}

export type Measurement = "kernels" | "collectives" | "steps";

export interface Parts {
  compute: number;
  exposed: Record<Axis, number>;
  bubble: number;
  optimizer: number;
}

/** Mean over the ranks of a pipeline stage; all but `stage` and `ranks` add up to the step time. */
export interface StageTime {
  stage: number;
  ranks: number;
  forward: number;
  backward_input: number;
  backward_weight: number;
  recompute: number;
  exposed: Record<Axis, number>;
  bubble: number;
  optimizer: number;
}

export interface Communication {
  sent_bytes: Record<Axis, number>;
  busy_s: Record<Axis, number>;
  hidden_s: Record<Axis, number>; // while a kernel of the rank runs
  all: {sent_bytes: number; busy_s: number; hidden_s: number};
}

export interface LayerTraffic {
  layer: number;
  ranks: number; // that hold it
  sent_bytes: Record<"tp" | "cp" | "ep", number>; // by one of them, in a step
  activation_bytes: number; // of a micro-batch, kept for the backward
}

export interface ExpertBalance {
  routing: "top-k" | "expert-choice";
  tokens: number; // that are routed together
  choices: number[]; // by expert, and so on
  slots: number[];
  dropped: number[];
  dropped_share: number;
  safe_capacity_factor?: number;
  safe_step_time_s?: number;
  untaken_share?: number;
}

/** All tasks of one operation and phase; of collectives by axis. Per rank, in the mean over all. */
export interface KindTime {
  name: string; // "gemm", "all_reduce (tp)"
  phase: Phase;
  count: number; // tasks of a rank
  time_s: number; // their durations added up, overlapped or not
}

export interface StageMemory {
  stage: number;
  parameters: number;
  gradients: number;
  optimizer: number;
  activations: number;
  buffers: number;
  peak_bytes: number;
  peak_at_s: number;
}

// ---- one step -------------------------------------------------------------------------------------------------------------------

export interface StepReport extends Head {
  kind: "step";
  result: Result;
  facts: FactGroup[]; // the scenario for a person
  mesh: Mesh;
  timeline: Timeline;
  memory: MemoryOfStage[];
  links: LinkUse;
  critical_path: PackedPath;
  blame: Blame[]; // most gained first; empty for executed steps, which cannot be executed faster
}

export interface FactGroup {
  name: string; // "model", "parallelism", "training", "cluster"
  facts: [name: string, value: string][];
}

/** Which axis lies where. */
export interface Mesh {
  gpus: number;
  gpus_per_node: number;
  nodes: number;
  axes: MeshAxis[]; // innermost first, those of size 1 left out
  gpus_drawn: Record<Axis, number>[]; // coordinates of the first GPUs, in order; at most 64
}

export interface MeshAxis {
  axis: Axis;
  size: number;
  stride: number; // GPUs from one member to the next
  nodes: number; // that one of its communicators spans
  reach: "node" | "rail" | "leaf" | "pod" | "core"; // how far up its traffic goes
}

/**
 * Tasks by row, stream, time. The columns hold the tasks of row 0 stream 0, then stream 1, ...; each is base64 of zlib-deflated
 * little-endian numbers. A task starts `gap` ticks after the end of the one before it on its stream (the first: after 0).
 *
 * Where there is a `repeat`, the `repeated` tasks of each stream happen once more `times` times, each time `length_s` and so many
 * micro-batches later than before, and the tasks after them come as much later as the last of these times. Where the model has
 * two copies, the micro-batches of the second count from one that is all of that later, in every task.
 *
 * A row that mirrors another has the other's tasks, those of each copy of the model as the other copy's: see `mirror`.
 */
export interface Timeline {
  tick_s: number;
  step_s: number;
  streams: string[];
  rows: TimelineRow[]; // by stage
  types: TaskType[];
  columns: {
    gap: string; // uint32
    duration: string; // uint32
    type: string; // uint32, into types
    run: string; // uint32: so many tasks have the labels that stand at its place in the next three
    micro_batch: string; // int16; -1: none
    layer: string; // int16; -1: none
    chunk: string; // int16, model chunk on the rank; -1: none
  };
  repeat?: Repeat;
  mirror?: Mirror;
}

/** What tasks become on a stage's mirror: chunk 0 is chunk 1, and the other way round. */
export interface Mirror {
  micro_batches: number; // of one copy of the model, in the step: so many earlier or later
  streams: [one: number, other: number][]; // each is the other; streams that are not here stay what they are
}

export interface Repeat {
  times: number; // at least 1
  length_s: number;
  micro_batches: number;
  second_half_from: number; // the first micro-batch of the second copy of the model; 0: there is one copy
}

export interface TimelineRow {
  stage: number;
  rank: number; // in the world
  stands_for: number; // ranks that behave alike
  name: string; // "rank 16 · tp 0 · pp 1 ×1024"
  streams: StreamTasks[]; // none of a row that mirrors another
  mirrors?: number; // the place of the row that has the tasks
}

export interface StreamTasks {
  stream: number;
  tasks: number; // in the columns
  repeated?: [first: number, after: number]; // of these, with a `repeat`
}

export interface TaskType {
  name: string;
  op: string;
  kind: "kernel" | "communication";
  phase: Phase;
  axis: Axis | "none";
  operands: string; // "bf16[8192,1,16384] ... -> bf16[...]"
  flops: number; // 0 for communication
  bytes: number;
  bound: string; // "arithmetic", "memory", "launch"; of communication "latency", or the tier of links that limits it
  communicator?: string;
  ranks?: number; // of the communicator
}

/** Of the fullest rank of each stage. */
export interface MemoryOfStage {
  stage: number;
  rank: number;
  gpu_bytes: number;
  parameters: number; // held for the whole step, as the next two
  gradients: number;
  optimizer: number;
  peak_at_s: number;
  peak_bytes: number;
  peak_task: string; // that ran when it was reached
  largest: {what: string; bytes: number}[]; // what held most activations at the peak, by the operation that wrote them; at most 8
  /** A step function, thinned to a few hundred points that keep every local peak of note and the peak itself. */
  t_s: number[];
  activations: number[];
  buffers: number[];
}

/** Bytes over directed links, spread evenly over the time of each collective. */
export interface LinkUse {
  edges_s: number[]; // of the bins of time; one more than bins
  tiers: TierUse[]; // innermost first
  links: OneLink[]; // most bytes over capacity first, at most 64
}

export interface TierUse {
  tier: string; // "nvlink", "pcie", "nic", "leaf", "spine"
  links: number;
  capacity: number; // of one, bytes/s; the smallest
  utilisation: number[]; // by bin, mean over the tier's links, 0 ... 1
}

export interface OneLink {
  name: string;
  tier: string;
  stands_for: number; // links
  capacity: number;
  bytes: number; // over one of them in the step
  utilisation: number[]; // by bin
  users: {communicator: string; axis: Axis | "none"; bytes: number}[]; // most first, at most 6
}

/**
 * The chain of tasks and waits that the step time is made of, in segments from its beginning to its end: each begins where the one
 * before it ends, and neighbours of the same row and kind are one. Columns are packed as those of a timeline.
 */
export interface PackedPath {
  tick_s: number;
  segments: number;
  names: string[]; // of kinds and of tasks
  columns: {
    row: string; // int16, of the timeline; -1: a rank that is not drawn
    duration: string; // uint32, ticks
    kind: string; // uint32, into names: "gemm forward", "all_reduce (tp)", "wait"
    task: string; // uint32, into names: the first one's; of a wait ""
    tasks: string; // uint32
  };
  kinds: PathKind[];
}

export interface PathKind {
  name: string;
  time_s: number; // all kinds' add up to the step time; most first
}

/** The step simulated again with one thing `factor` times as fast. */
export interface Blame {
  group: "kernel" | "axis" | "tier" | "stage";
  name: string; // "gemm", "tp", "nic", "stage 3"
  factor: number;
  step_time_s: number;
  gained_s: number;
}

// ---- the others -----------------------------------------------------------------------------------------------------------------

export interface CrosscheckReport extends Head {
  kind: "crosscheck";
  result: Result & {crosscheck: Crosscheck}; // of the executed step
  facts: FactGroup[];
  /** Every task, or a sample of those where there are more than 20,000. */
  tasks: {kind: number[]; simulated_s: number[]; measured_s: number[]; kinds: string[]};
  simulated: Timeline;
  measured: Timeline;
}

export interface SimulatedAndMeasured {
  simulated_s: number;
  measured_s: number;
  error: number | null; // simulated / measured - 1; null where nothing was measured
}

export interface Overlap {
  busy_s: number; // some task of the stream ran
  covered_s: number; // and a kernel of the same rank
}

export interface Crosscheck {
  step: SimulatedAndMeasured;
  kinds: (SimulatedAndMeasured & {kind: string; count: number; share: number})[];
  overlap: {stream: string; ranks: number; simulated: Overlap; measured: Overlap}[];
  worst: (SimulatedAndMeasured & {task: string; id: number; rank: number})[];
  memory: {simulated_bytes: number; executed_bytes: number; measured_bytes: number | null};
  ranks: {rank: number; tasks: number; same_order: boolean}[];
}

export interface StudyReport extends Head {
  kind: "study";
  parameters: {name: string; values: (string | number | boolean)[]}[]; // what the study varies, in its order
  points: StudyPoint[];
}

export interface StudyPoint {
  parameters: Record<string, string | number | boolean>;
  status: "done" | "oom" | "refused" | "failed" | "not run";
  sentence: string; // why, where it is not done
  result: Result | null;
}

/** b against a: gained is negative. */
export interface DiffReport extends Head {
  kind: "diff";
  a: {name: string; step_time_s: number};
  b: {name: string; step_time_s: number};
  parts: Difference[]; // of time_s; add up to the step times
  kinds: Difference[];
  axes: Difference[]; // exposed communication
  stages: {stage: number; parts: Difference[]}[];
  memory: {stage: number; a_bytes: number | null; b_bytes: number | null}[]; // null: no such stage
}

export interface Difference {
  name: string;
  a_s: number | null; // null: not there
  b_s: number | null;
}

/** What `tandem validate --json` holds, without the parts of each step. */
export interface ValidationReport extends Head {
  kind: "validation";
  rows: ValidatedRun[];
  strata: Stratum[];
  memory: {
    rows: {id: string; measured_bytes: number; predicted_bytes: number; error: number}[];
    median_abs_error: number;
    p90_abs_error: number;
    bias: number;
    fits: {ran_and_fits: number; ran_but_exceeds: number; oom_but_fits: number; oom_and_exceeds: number};
  };
  ratios: {
    axes: {axis: string; pairs: number; sources: number; median_abs_error: number; p90_abs_error: number}[];
    pairs: {axis: string; from: string; to: string; measured: number; predicted: number; error: number}[];
  };
  unsimulated: {id: string; reason: string}[];
}

export interface ValidatedRun {
  id: string;
  source: string;
  framework: string;
  gpu: string;
  measured_step_time_s: number | null;
  predicted_step_time_s: number | null; // null: not simulated
  low_s: number | null;
  high_s: number | null;
  error: number | null; // predicted / measured - 1
  note: string;
}

/** Rows that are alike in something, each source weighing the same. */
export interface Stratum {
  set: "all" | "core";
  by: "all" | "kind" | "gpu" | "gpu and kind" | "framework" | "source";
  name: string;
  rows: number;
  sources: number;
  median_abs_error: number;
  mean_abs_error: number;
  p90_abs_error: number;
  bias: number; // median of the error with its sign
  coverage: number; // share of rows inside their interval
}

export interface FailureReport extends Head {
  kind: "failure";
  sentence: string; // what the terminal said
  exit_code: number;
  facts: FactGroup[];
}
