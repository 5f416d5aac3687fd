"""The results of Tandem, key by key. Made by make_results.py from docs/json.md: do not edit."""

from __future__ import annotations

from typing import Any, List, Optional

from .record import Named, Record


class Parts(Record):
    """PARTS, as docs/json.md has it."""

    compute: float
    """Kernels of forward, backward and recompute. [s]"""
    exposed: Named[float]
    """Communication that no kernel hides, by axis."""
    bubble: float
    """Waiting for other ranks: the pipeline bubble and stragglers. [s]"""
    optimizer: float
    """Kernels of the optimizer. [s]"""


class Kind(Record):
    """KIND, as docs/json.md has it."""

    name: str
    """The operation; a collective with its axis: all_reduce (tp)."""
    phase: str
    """forward, backward-input, backward-weight, recompute or optimizer."""
    count: float
    """Tasks of a rank. [tasks]"""
    time_s: float
    """Their durations added up, overlapped or not. Kernels add up to compute and optimizer. [s]"""
    assumed_s: Optional[float]
    """Of products whose speed is assumed (cluster.gpu.efficiency.gemm.TYPE.assumed): the standard error of that time.
    Left out where it is 0. [s]"""


class IntervalShares(Record):
    """What the width comes from: shares of its square, which sum to 1."""

    products: float
    """Matrix products. [fraction]"""
    attention: float
    """Attention. [fraction]"""
    other_kernels: float
    """Kernels that move memory. [fraction]"""
    collectives: float
    """Exposed communication. [fraction]"""
    framework: float
    """What frameworks add, and a framework never measured. [fraction]"""
    unknown: float
    """What measured steps like this were off by beyond these, and a GPU never measured. [fraction]"""


class IntervalKnownFrom(Record):
    """The measured runs that the width comes from."""

    class_: str
    """What they are alike in: experts or dense, generation of the GPU, framework; or site."""
    runs: int
    """How many. [runs]"""
    sources: int
    """Of how many sources. [sources]"""


class IntervalGiveOrTakeIfMeasured(Record):
    """INTERVAL.high over the step time, less 1, were these known exactly."""

    kernels: float
    """The kernels of this GPU. [fraction]"""
    collectives: float
    """The collectives of this cluster. [fraction]"""
    steps: float
    """Steps like this one. [fraction]"""


class Interval(Record):
    """INTERVAL, as docs/json.md has it."""

    low: float
    """Lower end. [s]"""
    high: float
    """Upper end. [s]"""
    shares: IntervalShares
    """What the width comes from: shares of its square, which sum to 1."""
    known_from: IntervalKnownFrom
    """The measured runs that the width comes from."""
    seen_gpu: bool
    """Whether any of the measured runs had this GPU."""
    seen_framework: bool
    """Whether any had this framework."""
    give_or_take_if_measured: IntervalGiveOrTakeIfMeasured
    """INTERVAL.high over the step time, less 1, were these known exactly."""


class CrossCheckStep(Record):
    """The whole step."""

    simulated_s: float
    """Its simulated time. [s]"""
    measured_s: float
    """Its measured time. [s]"""
    error: Optional[float]
    """The error; null where nothing was measured. [fraction]"""


class CrossCheckKind(Record):
    """Tasks by operation, collectives by axis."""

    kind: str
    """The operation."""
    count: float
    """Tasks on all ranks. [tasks]"""
    simulated_s: float
    """Their simulated durations, added up. [s]"""
    measured_s: float
    """Their measured durations, added up. [s]"""
    error: Optional[float]
    """The error; null where nothing was measured. [fraction]"""
    share: float
    """Share of all measured time. [fraction]"""


class CrossCheckOverlapSimulated(Record):
    """As simulated."""

    busy_s: float
    """How long the stream was busy. [s]"""
    covered_s: float
    """How much of that its rank computed. [s]"""


class CrossCheckOverlapMeasured(Record):
    """As measured."""

    busy_s: float
    """How long the stream was busy. [s]"""
    covered_s: float
    """How much of that its rank computed. [s]"""


class CrossCheckOverlap(Record):
    """Communication streams, summed over their ranks."""

    stream: str
    """The stream."""
    ranks: int
    """Ranks that have it. [ranks]"""
    simulated: CrossCheckOverlapSimulated
    """As simulated."""
    measured: CrossCheckOverlapMeasured
    """As measured."""


class CrossCheckWorst(Record):
    """The ten tasks whose durations differ most."""

    task: str
    """Name of the task."""
    id: int
    """Its index in the graph. [index]"""
    rank: int
    """Its rank. [rank]"""
    simulated_s: float
    """Its simulated duration. [s]"""
    measured_s: float
    """Its measured duration. [s]"""
    error: Optional[float]
    """The error; null where nothing was measured. [fraction]"""


class CrossCheckMemory(Record):
    """Peak of the fullest rank."""

    simulated_bytes: float
    """From the life of its buffers in simulated order. [bytes]"""
    executed_bytes: float
    """The same in executed order. [bytes]"""
    measured_bytes: Optional[float]
    """What the arena of the backend says; null where it has none. [bytes]"""


class CrossCheckRank(Record):
    """Order of tasks, rank by rank."""

    rank: int
    """The rank. [rank]"""
    tasks: float
    """Its tasks. [tasks]"""
    same_order: bool
    """Whether they ran in the same order on every stream."""


class CrossCheck(Record):
    """CROSSCHECK, as docs/json.md has it."""

    step: CrossCheckStep
    """The whole step."""
    kinds: List[CrossCheckKind]
    """Tasks by operation, collectives by axis."""
    overlap: List[CrossCheckOverlap]
    """Communication streams, summed over their ranks."""
    worst: List[CrossCheckWorst]
    """The ten tasks whose durations differ most."""
    memory: CrossCheckMemory
    """Peak of the fullest rank."""
    ranks: List[CrossCheckRank]
    """Order of tasks, rank by rank."""


class PlanMemory(Record):
    """Memory of the fullest stage."""

    peak_bytes: float
    """Its peak. [bytes]"""
    limit_bytes: float
    """What a plan may fill. [bytes]"""


class PlanLacks(Record):
    """By how much the plan breaks the constraints. Only in own and nearest."""

    memory_bytes: float
    """Memory that it lacks. [bytes]"""
    bubble: float
    """Bubble beyond the constraint. [fraction]"""
    exposed: float
    """Exposed communication beyond the constraint. [fraction]"""


class Plan(Record):
    """PLAN, as docs/json.md has it."""

    plan: str
    """The plan in a line: tp=2 sp=true pp=1 ...."""
    fields: Named[Any]
    """Fields of the scenario by path: "parallelism.tp": 2."""
    step_time_s: float
    """Simulated time of the step. [s]"""
    bound_s: float
    """The time that no simulation of it can beat. [s]"""
    tokens_per_s_per_gpu: float
    """Throughput of one GPU. [tokens/s]"""
    cost_per_million_tokens: Optional[float]
    """With the objective price_per_gpu_hour. [price]"""
    time_s: Parts
    """Where the time goes."""
    memory: PlanMemory
    """Memory of the fullest stage."""
    lacks: Optional[PlanLacks]
    """By how much the plan breaks the constraints. Only in own and nearest."""
    is_among: Optional[bool]
    """Whether the plan is one of those that are compared. Only in own."""


class Relief(Record):
    """RELIEF, as docs/json.md has it."""

    levers: List[str]
    """What is pulled: recompute, sp, zero, etp, ep, micro-batch, tp, cp, pp."""
    change: List[str]
    """The changes, as path=value."""
    step_time_s: float
    """Time of the step with them. [s]"""
    peak_bytes: float
    """Memory of its fullest stage. [bytes]"""
    fits: bool
    """Whether that fits with 5 % of the GPU to spare."""


class Spread(Record):
    """SPREAD, as docs/json.md has it."""

    mean: float
    """Mean. [as stated]"""
    p5: float
    """5th percentile. [as stated]"""
    p50: float
    """Median. [as stated]"""
    p95: float
    """95th percentile. [as stated]"""


class Run(Record):
    """RUN, as docs/json.md has it."""

    id: str
    """Its id."""
    measured_step_time_s: Optional[float]
    """Measured; null where it is not known. [s]"""
    predicted_step_time_s: Optional[float]
    """Predicted; null where it was not simulated. [s]"""
    low_s: float
    """Lower end of the predicted interval. [s]"""
    high_s: float
    """Upper end of the predicted interval. [s]"""
    expected_error: float
    """Standard error that the parts of the step let expect, before the table of intervals. [fraction]"""
    error: float
    """The error. [fraction]"""
    note: str
    """What there is to know about the prediction, or why there is none."""
    source: str
    """As in the table."""
    framework: str
    """As in the table."""
    gpu: str
    """As in the table."""
    moe: bool
    """Whether the model has experts."""
    core: bool
    """As in the table."""
    measured_tokens_per_s_per_gpu: Optional[float]
    """Measured throughput. [tokens/s]"""
    predicted_tokens_per_s_per_gpu: Optional[float]
    """Predicted throughput. [tokens/s]"""
    fits: Optional[bool]
    """Whether the predicted step fits."""
    peak_memory_bytes: Optional[float]
    """Predicted memory of the fullest GPU. [bytes]"""
    assumed: Optional[Named[Any]]
    """What stood in for blank cells, in the typical scenario."""
    time_s: Optional[Parts]
    """Where the predicted time goes."""
    kinds: Optional[List[Kind]]
    """Predicted tasks by kind."""
    scenario: Optional[str]
    """The typical scenario, complete."""


class StepSite(Record):
    """What was learnt of the site whose GPUs these are (site.h)."""

    runs: int
    """That it was learnt from. [runs]"""
    gpu: str
    """The GPU that they had."""
    framework: str
    """The framework that they ran under."""
    kernels: float
    """How many times as long kernels take. [ratio]"""
    communication: float
    """The same of collectives and transfers. [ratio]"""
    overhead_s: float
    """Time before the first kernel of each step. [s]"""
    spread: float
    """How many times as far from this its runs lie as those of one site usually do; 1 at least. [ratio]"""
    covariance: List[Any]
    """What is left to doubt: covariances of ln kernels, ln communication and overhead: kk, kc, ko, cc, co, oo."""


class StepStage(Record):
    """The same by pipeline stage."""

    stage: int
    """The stage. [index]"""
    ranks: int
    """Ranks of the stage, over which the times are means. [ranks]"""
    forward: float
    """Kernels of the forward. [s]"""
    backward_input: float
    """Kernels of the backward that make gradients of activations. [s]"""
    backward_weight: float
    """Kernels of the backward that make gradients of weights. [s]"""
    recompute: float
    """Kernels that run again. [s]"""
    exposed: Named[float]
    """Communication that no kernel hides."""
    bubble: float
    """Waiting for other ranks. [s]"""
    optimizer: float
    """Kernels of the optimizer. [s]"""


class StepMemoryStage(Record):
    """Stages, each at its peak."""

    stage: int
    """The stage. [index]"""
    parameters: float
    """Weights. [bytes]"""
    gradients: float
    """Gradients. [bytes]"""
    optimizer: float
    """States of the optimizer. [bytes]"""
    activations: float
    """Activations. [bytes]"""
    buffers: float
    """Everything else, such as buffers of communication. [bytes]"""
    peak_bytes: float
    """Their sum. [bytes]"""
    peak_at_s: float
    """When in the step. [s]"""
    graphs: Optional[float]
    """Of activations and buffers, what CUDA graphs hold all the time (graph_memory.h). [bytes]"""
    host: Optional[float]
    """What the rank keeps in the memory of its host, which is none of the peak. [bytes]"""


class StepMemory(Record):
    """Memory of the fullest rank of each stage."""

    peak_bytes: float
    """Peak of the fullest stage. [bytes]"""
    gpu_bytes: float
    """Memory of a GPU. [bytes]"""
    fits: bool
    """Whether the peak of every stage, its tensors and what the framework keeps, is no more than a GPU has."""
    allocated_bytes: Optional[float]
    """torch.cuda.max_memory_allocated of the fullest rank: the peak, each tensor as PyTorch's allocator cuts its block.
    Two steps of each stage's fullest rank, where it comes within a twentieth of the fullest of all, are played through
    a model of that allocator (allocator_replay.h). [bytes]"""
    reserved_bytes: Optional[float]
    """torch.cuda.max_memory_reserved of the rank where device_bytes is largest: with what the allocator keeps beside
    tensors. [bytes]"""
    nccl_bytes: Optional[float]
    """Buffers of the communicators that this rank uses (nccl_memory.h). [bytes]"""
    context_bytes: Optional[float]
    """CUDA's context, where the framework says how large it is. [bytes]"""
    device_bytes: Optional[float]
    """Reserved, NCCL's and CUDA's together: what nvidia-smi shows. [bytes]"""
    allocation_retries: Optional[int]
    """In two steps PyTorch's allocator found no room on the GPU and gave back what it kept (num_alloc_retries), which
    takes time that is not simulated. [times]"""
    device_fits: Optional[bool]
    """Whether it then found room. memory.fits does not ask this."""
    stages: List[StepMemoryStage]
    """Stages, each at its peak."""


class StepParameters(Record):
    """The model."""

    total: float
    """All of them. [parameters]"""
    active: float
    """Those that one token passes: without the experts that it does not go to. [parameters]"""


class StepCommunicationAll(Record):
    """On all axes."""

    sent_bytes: float
    """Their sum. [bytes]"""
    busy_s: float
    """How long communication of any axis ran. [s]"""
    hidden_s: float
    """How long a kernel of the rank ran at the same time. [s]"""
    hidden_share: Optional[float]
    """hidden_s over busy_s, where something is communicated. [fraction]"""


class StepCommunication(Record):
    """What a rank communicates, mean over all ranks."""

    sent_bytes: Named[float]
    """Bytes that it sends."""
    busy_s: Named[float]
    """How long communication ran."""
    hidden_s: Named[float]
    """How long a kernel of the rank ran at the same time."""
    hidden_share: Named[float]
    """hidden_s over busy_s."""
    all: StepCommunicationAll
    """On all axes."""


class StepIntensity(Record):
    """Arithmetic per byte of the GPU's memory, mean over all ranks."""

    flops: float
    """Matrix products and attention of a rank, recompute included. [FLOP]"""
    memory_bytes: float
    """What its kernels read and write, each operand once. Communication, and what a framework does not fuse, come on
    top. [bytes]"""
    flops_per_byte: float
    """One over the other. [FLOP/byte]"""
    ridge_flops_per_byte: float
    """Peak of the GPU over the bandwidth of its memory: above it arithmetic is the limit, below it the memory.
    [FLOP/byte]"""


class StepLayer(Record):
    """Layers of the model."""

    layer: int
    """The layer. [index]"""
    ranks: int
    """Ranks that hold it or a part of it, over which the bytes are means. [ranks]"""
    sent_bytes: Named[float]
    """Bytes that one of them sends for it in a step."""
    activation_bytes: float
    """Activations that one of them keeps from the forward of a micro-batch for the layer's backward. [bytes]"""


class StepDocuments(Record):
    """With training.documents: what sequences are packed of."""

    count: float
    """In all sequences of the step, of several of the first; a part of one counts as one. [documents]"""
    mean_tokens: float
    """Of a document, on average. [tokens]"""
    longest_tokens: float
    """Of the longest. [tokens]"""
    padding_tokens: float
    """In all, which count as tokens everywhere else. [tokens]"""
    padding_flops_share: float
    """Of the model FLOPs, those of padding and of its pairs with other positions. [fraction]"""
    mfu_without_padding: float
    """mfu if these count as nothing. [fraction]"""
    attention_share: float
    """Pairs of positions that are of one document, of those of one sequence; model FLOPs count attention by the former.
    [fraction]"""
    heaviest_micro_batch: float
    """Such pairs of the heaviest micro-batch, over the mean. [factor]"""
    heaviest_replica: float
    """The same of data-parallel replicas, over their whole step. [factor]"""
    heaviest_rank: float
    """The same of the context-parallel ranks of dynamic groups (parallelism.dynamic_cp), of all replicas; 1 without.
    [factor]"""
    mean_cp: float
    """Context-parallel ranks that share a document, the mean over tokens, under parallelism.dynamic_cp; 1 without.
    [factor]"""


class StepExperts(Record):
    """Of experts out of balance, or that choose."""

    routing: str
    """top-k or expert-choice."""
    tokens: float
    """That are routed together: a rank's part of a micro-batch. [tokens]"""
    choices: List[float]
    """By expert, before any is dropped."""
    slots: List[float]
    """By expert: how many it has places for."""
    dropped: List[float]
    """By expert: how many it drops."""
    dropped_share: float
    """Of all choices. [fraction]"""
    safe_capacity_factor: Optional[float]
    """Under top-k: the least capacity factor that drops nothing; choices of the busiest expert over the even share.
    [factor]"""
    safe_step_time_s: Optional[float]
    """Simulated step with that factor, where the scenario has another. [s]"""
    untaken_share: Optional[float]
    """Under expert choice: tokens that no expert takes if each chooses at random. [fraction]"""


class StepBounds(Record):
    """Between these every simulated time lies."""

    lower: float
    """The roofline with perfect overlap. [s]"""
    upper: float
    """The same work with no overlap at all. [s]"""


class StepSyncOwnStep(Record):
    """A replica's step without the exchange with others."""

    fastest: float
    """Of the fastest replica, undisturbed. [s]"""
    slowest: float
    """Of the slowest. [s]"""
    deviation: float
    """Standard deviation of the drawn ones, of the replica that varies most; 0 without jitter. [s]"""


class StepSyncExchange(Record):
    """What the exchange between replicas adds to such a step."""

    synchronous: float
    """To the slowest replica's in the synchronous step. [s]"""
    others: float
    """To that of a replica without slow GPUs. [s]"""
    averaging: Optional[float]
    """With kind local: averaging the weights. [s]"""


class StepSyncPolicyLackedHistogram(Record):
    """Shares of the applied gradients; what no gradient lacked is left out."""

    from_: float
    """That so many lacked at least, [updates]"""
    to: float
    """and so many at most. [updates]"""
    share: float
    """Of the applied gradients. [fraction]"""


class StepSyncPolicyLacked(Record):
    """Updates that the weights lacked which an applied gradient was computed from (its staleness)."""

    mean: float
    """Mean. [updates]"""
    max: float
    """Most. [updates]"""
    histogram: List[StepSyncPolicyLackedHistogram]
    """Shares of the applied gradients; what no gradient lacked is left out."""


class StepSyncPolicy(Record):
    """The policies, the synchronous one first."""

    kind: str
    """synchronous, backup, stale, asynchronous or local."""
    backups: Optional[int]
    """With kind backup: as in the scenario. [replicas]"""
    late: Optional[str]
    """With kind backup: finish or abandon."""
    staleness: Optional[float]
    """With kind stale: the bound. [steps]"""
    every: Optional[float]
    """With kind local: the period. [steps]"""
    servers: Optional[float]
    """Of parameter servers, where there are any. [nodes]"""
    serving_share: Optional[float]
    """Of the time: these were busy. [fraction]"""
    applied: float
    """That changed the weights; a replica computes one a step. [gradients]"""
    dropped: float
    """That were computed, or begun and abandoned, for nothing. [gradients]"""
    update_time_s: float
    """From one update of the weights to the next, mean. [s]"""
    batch_time_s: float
    """In which as many gradients are applied as there are replicas, mean: what the synchronous step does. [s]"""
    tokens_per_s_per_gpu: float
    """Of applied gradients. [tokens/s]"""
    speedup: float
    """These over those of the synchronous policy. [factor]"""
    dropped_share: float
    """Of the gradients. [fraction]"""
    wasted_share: float
    """Of the replicas' time: spent on dropped gradients. [fraction]"""
    waiting_share: float
    """Of the replicas' time: waiting for others, the exchange not counted. [fraction]"""
    lacked: StepSyncPolicyLacked
    """Updates that the weights lacked which an applied gradient was computed from (its staleness)."""
    most_ahead: float
    """That a replica was ahead of the slowest when it began one, at most. [steps]"""


class StepSync(Record):
    """With training.sync: policies against stragglers, played; all else is of the synchronous step."""

    replicas: int
    """Data-parallel replicas. [replicas]"""
    ranks_of_replica: int
    """Ranks of one. [ranks]"""
    steps: float
    """Steps of each policy that count; as many went before them. [steps]"""
    own_step_s: StepSyncOwnStep
    """A replica's step without the exchange with others."""
    exchange_s: StepSyncExchange
    """What the exchange between replicas adds to such a step."""
    policies: List[StepSyncPolicy]
    """The policies, the synchronous one first."""


class StepJitter(Record):
    """With faults.jitter: times of the drawn steps."""

    draws: float
    """How many were drawn. [steps]"""
    p50_s: float
    """Median. [s]"""
    p90_s: float
    """90th percentile. [s]"""
    p99_s: float
    """99th percentile. [s]"""
    mean_s: float
    """Mean. [s]"""


class StepRunFold(Record):
    """With --fold-tolerance, where links were merged."""

    tolerance: float
    """The tolerance. [fraction]"""
    step_time_lower_s: float
    """The exact step time is no less. [s]"""
    step_time_upper_s: float
    """The exact step time is no more. [s]"""


class StepRun(Record):
    """What the simulation or execution itself was; the only part that differs from run to run."""

    ranks: int
    """Ranks of the step. [ranks]"""
    rank_classes: int
    """Classes of equal ranks that were simulated; all ranks without folding. [classes]"""
    link_classes: int
    """Classes of equal links. [classes]"""
    tasks: float
    """Tasks of the graph. [tasks]"""
    tasks_simulated: Optional[float]
    """Tasks that were simulated: fewer where periods of a pipeline's steady state stand for those that are alike, or a
    stage for its mirror. [tasks]"""
    wall_s: float
    """Time that it took. [s]"""
    peak_rss_bytes: float
    """Memory that it took. [bytes]"""
    backend: str
    """simgrid, host or cuda."""
    undated_step_s: Optional[float]
    """The step once more, on a GPU that did not record when its tasks begin and end: what recording costs. [s]"""
    folded: bool
    """Whether one rank stood for each class."""
    collectives: Optional[str]
    """fluid or steps."""
    jitter_wall_s: Optional[float]
    """Time that the drawn steps took. [s]"""
    fold: Optional[StepRunFold]
    """With --fold-tolerance, where links were merged."""


class Step(Record):
    """A step: its keys as attributes."""

    scenario: str
    """Name of the scenario."""
    gpus: int
    """Ranks of the step. [GPUs]"""
    gpu: str
    """Name of the GPU."""
    gpu_architecture: str
    """Its generation: volta, ampere, hopper, blackwell, unknown."""
    site: Optional[StepSite]
    """What was learnt of the site whose GPUs these are (site.h)."""
    framework: str
    """Name of the framework."""
    tokens: float
    """Tokens of a step. [tokens]"""
    step_time_s: float
    """Time of the step. Under local SGD: the mean over a period. [s]"""
    tokens_per_s_per_gpu: float
    """Throughput of one GPU. [tokens/s]"""
    model_tflops_per_gpu: float
    """FLOPs of the model, without recompute, per GPU. [TFLOP/s]"""
    mfu: float
    """Model FLOPs utilisation: model_tflops_per_gpu over the peak. [fraction]"""
    hfu: float
    """Hardware FLOPs utilisation: the same with recompute. [fraction]"""
    flops_convention: str
    """causal: attention counts at half; full where model.causal is false."""
    bubble_fraction: float
    """time_s.bubble over step_time_s. [fraction]"""
    time_s: Parts
    """Where the time goes."""
    stages_s: List[StepStage]
    """The same by pipeline stage."""
    kinds: List[Kind]
    """Tasks by kind and phase, most time first."""
    memory: StepMemory
    """Memory of the fullest rank of each stage."""
    parameters: StepParameters
    """The model."""
    communication: StepCommunication
    """What a rank communicates, mean over all ranks."""
    intensity: StepIntensity
    """Arithmetic per byte of the GPU's memory, mean over all ranks."""
    layers: List[StepLayer]
    """Layers of the model."""
    documents: Optional[StepDocuments]
    """With training.documents: what sequences are packed of."""
    experts: Optional[StepExperts]
    """Of experts out of balance, or that choose."""
    bounds_s: StepBounds
    """Between these every simulated time lies."""
    interval_s: Optional[Interval]
    """Simulated steps: where a measured step would lie, nine times out of ten."""
    warnings: List[str]
    """What is possible but unwise, each with its place."""
    sync_every: Optional[float]
    """Under local SGD: steps of a period. [steps]"""
    step_time_local_s: Optional[float]
    """Under local SGD: a step without an exchange. [s]"""
    step_time_sync_s: Optional[float]
    """Under local SGD: the step that averages the weights. [s]"""
    sync: Optional[StepSync]
    """With training.sync: policies against stragglers, played; all else is of the synchronous step."""
    jitter: Optional[StepJitter]
    """With faults.jitter: times of the drawn steps."""
    run: StepRun
    """What the simulation or execution itself was; the only part that differs from run to run."""
    crosscheck: Optional[CrossCheck]
    """Written by crosscheck alone."""


class SearchRulesOfThumb(Record):
    """Rules that a plan of this search could break."""

    rule: str
    """The rule."""
    plans: int
    """Plans that break it and may fit. [plans]"""
    best: Optional[Plan]
    """The best plan that breaks it; null where none was simulated."""
    is_proven: bool
    """Whether no other plan that breaks it can be better."""


class SearchExplainedBounds(Record):
    """What it takes at least."""

    step_time_s: float
    """Time. [s]"""
    peak_bytes: float
    """Memory. [bytes]"""
    fullest_stage: int
    """The stage that takes it. [index]"""


class SearchExplainedLacks(Record):
    """As in PLAN."""

    memory_bytes: float
    """Memory that it lacks. [bytes]"""
    bubble: float
    """Bubble beyond the constraint. [fraction]"""
    exposed: float
    """Exposed communication beyond the constraint. [fraction]"""


class SearchExplained(Record):
    """With --explain."""

    plan: str
    """The plan."""
    is_among: bool
    """Whether it is one of those that are compared."""
    refusal: Optional[str]
    """The rule that refuses it; null where none does."""
    bounds: SearchExplainedBounds
    """What it takes at least."""
    failure: Optional[str]
    """Why its simulation failed."""
    simulated: Optional[Plan]
    """The plan as simulated."""
    lacks: Optional[SearchExplainedLacks]
    """As in PLAN."""


class SearchCounts(Record):
    """What the search did."""

    plans: int
    """Plans of the space. [plans]"""
    without_memory: int
    """Ruled out by the memory that they take at least. [plans]"""
    too_slow: int
    """Ruled out by the time that they take at least. [plans]"""
    left: int
    """Not simulated, and perhaps better than the first. [plans]"""
    refined: int
    """Whose time was bounded through the schedule. [plans]"""
    layer_costs: float
    """Layers of which the cost was found. [layers]"""
    simulated: int
    """Simulated. [plans]"""
    refused: int
    """Refused by the scenario's checks. [plans]"""
    failed: int
    """Whose simulation failed. [plans]"""


class SearchRun(Record):
    """What the search itself was."""

    bounding_s: float
    """Time that the bounds took. [s]"""
    wall_s: float
    """Time in all. [s]"""
    ended_early: bool
    """Whether the time of --within was over."""


class Search(Record):
    """A search: its keys as attributes."""

    scenario: str
    """Name of the scenario."""
    gpus: List[int]
    """Sizes of the cluster that plans may have."""
    objective: str
    """step-time, tokens-per-s-per-gpu or cost-per-million-tokens."""
    best: List[Plan]
    """The ten best plans at most, best first."""
    best_is_proven: bool
    """Whether no plan of the space is better than the first."""
    proven: int
    """So many of best are the best of the space. [plans]"""
    gap: Optional[float]
    """A plan that was not simulated may beat the first by this share of its score at most; null where none was, or not
    every plan was bounded. [fraction]"""
    pareto: List[Plan]
    """Plans faster than all that take no more memory, fastest first, of those that were simulated."""
    rules_of_thumb: List[SearchRulesOfThumb]
    """Rules that a plan of this search could break."""
    own: Optional[Plan]
    """The plan of the scenario itself; null where it cannot be simulated."""
    nearest: Optional[Plan]
    """Where no plan keeps to the constraints: the one that lacks least."""
    explained: Optional[SearchExplained]
    """With --explain."""
    counts: SearchCounts
    """What the search did."""
    run: SearchRun
    """What the search itself was."""


class LintStep(Record):
    """The step as it stands; null where it is refused or nothing was simulated."""

    step_time_s: float
    """Its time. [s]"""
    peak_bytes: float
    """Memory of the fullest stage. [bytes]"""
    gpu_bytes: float
    """Memory of a GPU. [bytes]"""
    fits: bool
    """Whether it fits."""


class LintFindingFixed(Record):
    """The step with the fix; null where it was not simulated."""

    step_time_s: float
    """Its time. [s]"""
    peak_bytes: float
    """Memory of its fullest stage. [bytes]"""
    fits: bool
    """Whether it fits."""


class LintFindingRelief(Record):
    """Of does-not-fit and little-memory-left: what was tried."""

    alone: List[Relief]
    """What each lever does alone: its fastest setting that fits, else the one with least memory."""
    plan: Optional[Relief]
    """The fastest simulated combination that fits so, which is also the fix; null where none does."""
    least: Relief
    """Where none fits: the simulated combination with the least memory."""
    tried: int
    """Whose memory was bounded. [combinations]"""
    simulated: int
    """That were simulated. [combinations]"""


class LintFinding(Record):
    """Findings, the dearest first."""

    severity: str
    """error, warning or advice."""
    rule: str
    """Name of the rule."""
    place: str
    """file:line:column."""
    sentence: str
    """What it is and why it hurts."""
    cost_s: Optional[float]
    """What the fix takes off a step; null where nothing was simulated. [s]"""
    fix: List[str]
    """Changes that relieve it, as path=value."""
    fixed: Optional[LintFindingFixed]
    """The step with the fix; null where it was not simulated."""
    relief: Optional[LintFindingRelief]
    """Of does-not-fit and little-memory-left: what was tried."""


class Lint(Record):
    """A lint: its keys as attributes."""

    scenario: str
    """Name of the scenario."""
    step: Optional[LintStep]
    """The step as it stands; null where it is refused or nothing was simulated."""
    findings: List[LintFinding]
    """Findings, the dearest first."""


class DiffA(Record):
    """The first result."""

    name: str
    """Its file."""
    step_time_s: float
    """Its step time. [s]"""


class DiffB(Record):
    """The second result."""

    name: str
    """Its file."""
    step_time_s: float
    """Its step time. [s]"""


class DiffPart(Record):
    """Parts of the step; their changes add up to that of the step time."""

    name: str
    """The part."""
    a_s: Optional[float]
    """In the first; null where it has no such thing. [s]"""
    b_s: Optional[float]
    """In the second; null where it has no such thing. [s]"""


class DiffKind(Record):
    """Kinds of tasks, most changed first."""

    name: str
    """The kind and its phase."""
    a_s: Optional[float]
    """In the first; null where it has no such thing. [s]"""
    b_s: Optional[float]
    """In the second; null where it has no such thing. [s]"""


class DiffAxis(Record):
    """Exposed communication by axis."""

    name: str
    """The axis."""
    a_s: Optional[float]
    """In the first; null where it has no such thing. [s]"""
    b_s: Optional[float]
    """In the second; null where it has no such thing. [s]"""


class DiffStagePart(Record):
    """Parts of its step."""

    name: str
    """The part."""
    a_s: Optional[float]
    """In the first; null where it has no such thing. [s]"""
    b_s: Optional[float]
    """In the second; null where it has no such thing. [s]"""


class DiffStage(Record):
    """Pipeline stages."""

    stage: int
    """The stage. [index]"""
    parts: List[DiffStagePart]
    """Parts of its step."""


class DiffMemory(Record):
    """Peaks by pipeline stage."""

    stage: int
    """The stage. [index]"""
    a_bytes: Optional[float]
    """In the first; null where it has no such thing. [bytes]"""
    b_bytes: Optional[float]
    """In the second; null where it has no such thing. [bytes]"""


class Diff(Record):
    """A diff: its keys as attributes."""

    kind: str
    """diff."""
    a: DiffA
    """The first result."""
    b: DiffB
    """The second result."""
    parts: List[DiffPart]
    """Parts of the step; their changes add up to that of the step time."""
    kinds: List[DiffKind]
    """Kinds of tasks, most changed first."""
    axes: List[DiffAxis]
    """Exposed communication by axis."""
    stages: List[DiffStage]
    """Pipeline stages."""
    memory: List[DiffMemory]
    """Peaks by pipeline stage."""


class CampaignStep(Record):
    """The step that was simulated."""

    time_s: float
    """Its time. [s]"""
    low_s: float
    """Lower end of its interval. [s]"""
    high_s: float
    """Upper end of its interval. [s]"""
    with_slow_node_s: Optional[float]
    """Its time with a slow node; null where none is slow. [s]"""
    tokens: float
    """Tokens of a step. [tokens]"""


class CampaignParts(Record):
    """Mean parts, which add up to the time."""

    training: float
    """Training that was kept. [s]"""
    slow_nodes: float
    """What slow nodes added. [s]"""
    checkpoint: float
    """Stalls of checkpoints. [s]"""
    lost_work: float
    """Work that failures lost. [s]"""
    detection: float
    """Until failures were found. [s]"""
    restart: float
    """Restarts, with loading. [s]"""
    waiting: float
    """Waiting for nodes. [s]"""


class CampaignInterruptionsComponent(Record):
    """Failures by component."""

    component: str
    """gpu, node, link or software."""
    mean: float
    """Mean number. [failures]"""
    mtbf_s: Optional[float]
    """Between two of them; null where it never fails. [s]"""


class CampaignInterruptions(Record):
    """What stopped the job."""

    unexpected: Spread
    """Failures."""
    mtbf_s: float
    """Training between two failures. [s]"""
    components: List[CampaignInterruptionsComponent]
    """Failures by component."""
    planned: float
    """Planned stops, mean. [stops]"""
    slow_nodes_found: float
    """Slow nodes that were replaced, mean. [nodes]"""


class CampaignCheckpointInterval(Record):
    """Goodput of several intervals."""

    name: str
    """used, half, twice, best, young or daly."""
    interval_s: float
    """The interval. [s]"""
    steps: float
    """The same in steps. [steps]"""
    goodput: Spread
    """As played."""
    goodput_closed_form: float
    """By the formula. [fraction]"""


class CampaignCheckpoint(Record):
    """Checkpoints."""

    mode: str
    """sync or async."""
    bytes: float
    """Size of one. [bytes]"""
    parameters: float
    """Parameters of the model. [parameters]"""
    stall_s: float
    """How long training waits for one. [s]"""
    write_s: float
    """Until it is durable, after that. [s]"""
    load_s: float
    """How long loading takes. [s]"""
    interval_s: float
    """Training between two. [s]"""
    intervals: List[CampaignCheckpointInterval]
    """Goodput of several intervals."""


class Campaign(Record):
    """A campaign: its keys as attributes."""

    kind: str
    """campaign."""
    scenario: str
    """Name of the scenario."""
    preset: str
    """Name of the campaign preset."""
    gpu: str
    """Name of the GPU."""
    gpus: int
    """GPUs of the job. [GPUs]"""
    nodes: float
    """Nodes of the job. [nodes]"""
    spare_nodes: float
    """Nodes beside them. [nodes]"""
    step: CampaignStep
    """The step that was simulated."""
    time_s: Spread
    """Seconds of the campaign."""
    time_with_step_s: Spread
    """The same, with the step time drawn, too."""
    tokens: Spread
    """Tokens trained."""
    tokens_with_step: Spread
    """The same, with the step time drawn, too."""
    gpu_hours: Spread
    """GPU-hours, without spare nodes."""
    gpu_hours_with_step: Spread
    """The same, with the step time drawn, too."""
    goodput: Spread
    """Share of the time that trains."""
    parts_s: CampaignParts
    """Mean parts, which add up to the time."""
    interruptions: CampaignInterruptions
    """What stopped the job."""
    checkpoint: CampaignCheckpoint
    """Checkpoints."""
    replicas: int
    """Campaigns that were played. [campaigns]"""
    seed: float
    """Their seed. [number]"""


class PlacementNodes(Record):
    """Nodes."""

    needed: float
    """Nodes that the job takes. [nodes]"""
    free: float
    """Nodes that are free. [nodes]"""
    cluster: float
    """Nodes of the cluster. [nodes]"""


class PlacementHost(Record):
    """Its hosts in the order of the ranks; empty where cluster.hosts does not name all."""

    host: str
    """Name of the host."""
    ranks: int
    """Ranks on it. [ranks]"""


class PlacementLinksPacked(Record):
    """Under the packed placement."""

    tier: str
    """The tier."""
    links: float
    """Links of the tier. [links]"""
    bytes: float
    """Bytes over all of them. [bytes]"""
    slowest_link_s: float
    """Bytes / capacity of the busiest. [s]"""


class PlacementLinksFound(Record):
    """Under the one that was taken."""

    tier: str
    """The tier."""
    links: float
    """Links of the tier. [links]"""
    bytes: float
    """Bytes over all of them. [bytes]"""
    slowest_link_s: float
    """Bytes / capacity of the busiest. [s]"""


class PlacementLinks(Record):
    """Links between nodes, by tier, per step."""

    packed: List[PlacementLinksPacked]
    """Under the packed placement."""
    found: List[PlacementLinksFound]
    """Under the one that was taken."""


class PlacementCommunicator(Record):
    """Families of communicators that leave their node."""

    family: str
    """The family: dp, pp forward."""
    packed: Named[int]
    """How many reach how far, packed."""
    found: Named[int]
    """How many reach how far, as found."""
    lower: int
    """That moved lower. [communicators]"""
    higher: int
    """That moved higher. [communicators]"""


class PlacementCandidate(Record):
    """Placements that were found."""

    name: str
    """How it was found."""
    slowest_link_s: float
    """Bytes / capacity of the busiest link between nodes. [s]"""
    spread_s: float
    """Root of the mean square over all links. [s]"""
    step_time_s: Optional[float]
    """Simulated step time; null where its load was too high to be simulated. [s]"""
    message: Optional[str]
    """Why its simulation failed; null where it did not."""
    nodes: List[int]
    """Its node for each block of ranks."""


class Placement(Record):
    """A placement: its keys as attributes."""

    scenario: str
    """Name of the scenario."""
    ranks: int
    """Ranks of the job. [ranks]"""
    gpus_per_node: int
    """GPUs of a node. [GPUs]"""
    nodes: PlacementNodes
    """Nodes."""
    step_time_packed_s: float
    """Step time of the packed placement. [s]"""
    step_time_found_s: float
    """Step time of the one that was taken. [s]"""
    gain: float
    """Packed / found - 1. [fraction]"""
    placement: str
    """Name of the one that was taken."""
    nodes_of_blocks: List[int]
    """Its node for each block of ranks (the ranks of one node)."""
    hosts: List[PlacementHost]
    """Its hosts in the order of the ranks; empty where cluster.hosts does not name all."""
    links: PlacementLinks
    """Links between nodes, by tier, per step."""
    communicators: List[PlacementCommunicator]
    """Families of communicators that leave their node."""
    candidates: List[PlacementCandidate]
    """Placements that were found."""
    warnings: List[str]
    """Warnings of the scenario."""


class TopologyCluster(Record):
    """The cluster."""

    name: str
    """Its name."""
    gpu: str
    """Its GPU."""
    gpus: int
    """Its GPUs. [GPUs]"""
    nodes: float
    """Its nodes. [nodes]"""
    gpus_per_node: int
    """GPUs of a node. [GPUs]"""
    node_links: str
    """How the GPUs of a node are joined: switched or mesh."""
    nvswitch_planes: int
    """NVSwitches of a node. [planes]"""
    nics: int
    """Its NICs. [NICs]"""


class TopologyFabric(Record):
    """The switches between the nodes."""

    kind: str
    """fat-tree, dragonfly-plus, one-switch or custom."""
    tiers: int
    """Tiers of switches. [tiers]"""
    rail_optimized: bool
    """Whether leaves belong to rails."""
    routing: str
    """adaptive or ecmp."""
    leaves: int
    """Leaf switches. [switches]"""
    pods: int
    """Pods. [pods]"""
    spines: int
    """Spine switches. [switches]"""
    cores: int
    """Core switches. [switches]"""
    bisection_Bps: Optional[float]
    """Bisection bandwidth; null for one node. [bytes/s]"""
    bisection_share: Optional[float]
    """Over what the NICs of half the nodes send; null for one node. [fraction]"""


class TopologyLink(Record):
    """Tiers of links."""

    tier: str
    """The tier."""
    ports: int
    """Ports of the tier. [ports]"""
    cables: int
    """Cables of the tier. [cables]"""
    total_Bps: float
    """Bandwidth of all of them, one direction. [bytes/s]"""
    oversubscription: Optional[float]
    """Bandwidth below over bandwidth above; null where there is no such ratio. [ratio]"""


class TopologyCommunicator(Record):
    """Families of communicators."""

    family: str
    """The family."""
    axis: str
    """The axis of its exposed time."""
    communicators: int
    """How many there are. [communicators]"""
    ranks: int
    """Members of each. [ranks]"""
    nodes: float
    """Nodes that each spans. [nodes]"""
    reach: str
    """node, rail, leaf, pod or core."""
    links: Named[List[float]]
    """Links that one of them crosses."""
    alone_Bps: Optional[List[float]]
    """What its ring gets alone; null where it has no ring. [bytes/s, a range]"""
    together_Bps: Optional[List[float]]
    """What it gets while all of the family run; null where it has no ring. [bytes/s, a range]"""
    hop_latency_s: List[float]
    """Latency of a hop. [s, a range]"""


class Topology(Record):
    """A topology: its keys as attributes."""

    scenario: str
    """Name of the scenario."""
    cluster: TopologyCluster
    """The cluster."""
    fabric: TopologyFabric
    """The switches between the nodes."""
    links: List[TopologyLink]
    """Tiers of links."""
    communicators: List[TopologyCommunicator]
    """Families of communicators."""
    warnings: List[str]
    """Warnings of the scenario."""


class ValidationStrata(Record):
    """Scores of rows that are alike in something."""

    set: str
    """all rows, or core."""
    by: str
    """What they are alike in: all, kind, gpu, gpu and kind, framework, source."""
    name: str
    """Which ones."""
    rows: int
    """How many. [rows]"""
    sources: int
    """Of how many sources. [sources]"""
    median_abs_error: float
    """Median of the size of the error. [fraction]"""
    mean_abs_error: float
    """Its mean. [fraction]"""
    p90_abs_error: float
    """Its 90th percentile. [fraction]"""
    bias: float
    """Median of the error. [fraction]"""
    coverage: float
    """Share of rows inside their predicted interval. [fraction]"""


class ValidationMemoryRow(Record):
    """Those runs."""

    id: str
    """Its id."""
    figure: str
    """What was measured: tensors where the table does not say, which is held against the sum of the buffers. A row that
    states two has two entries."""
    measured_bytes: float
    """Measured. [bytes]"""
    predicted_bytes: float
    """The same figure, predicted. [bytes]"""
    error: float
    """The error. [fraction]"""


class ValidationMemoryFigure(Record):
    """The same by figure."""

    figure: str
    """The figure."""
    rows: int
    """How many state it. [rows]"""
    median_abs_error: float
    """Median of the size of the error. [fraction]"""
    p90_abs_error: float
    """Its 90th percentile. [fraction]"""
    bias: float
    """Median of the error. [fraction]"""


class ValidationMemoryFits(Record):
    """Whether runs fit, as they did."""

    ran_and_fits: int
    """Ran, and are predicted to fit. [rows]"""
    ran_but_exceeds: int
    """Ran, though predicted not to fit. [rows]"""
    oom_but_fits: int
    """Ran out of memory, though predicted to fit. [rows]"""
    oom_and_exceeds: int
    """Ran out of memory, as predicted. [rows]"""


class ValidationMemory(Record):
    """Memory of runs that state it."""

    rows: List[ValidationMemoryRow]
    """Those runs."""
    median_abs_error: float
    """Median of the size of the error. [fraction]"""
    p90_abs_error: float
    """Its 90th percentile. [fraction]"""
    bias: float
    """Median of the error. [fraction]"""
    figures: List[ValidationMemoryFigure]
    """The same by figure."""
    fits: ValidationMemoryFits
    """Whether runs fit, as they did."""


class ValidationRatiosAxis(Record):
    """By that thing."""

    axis: str
    """What they differ in."""
    pairs: int
    """How many. [pairs]"""
    sources: int
    """Of how many sources. [sources]"""
    median_abs_error: float
    """Median of the size of the error. [fraction]"""
    p90_abs_error: float
    """Its 90th percentile. [fraction]"""


class ValidationRatiosPair(Record):
    """The pairs."""

    axis: str
    """What they differ in."""
    from_: str
    """Id of one run."""
    to: str
    """Id of the other."""
    measured: float
    """Measured time of the other over the one. [ratio]"""
    predicted: float
    """The same, predicted. [ratio]"""
    error: float
    """The error of the ratio. [fraction]"""


class ValidationRatios(Record):
    """Ratios of two runs of one source that differ in one thing."""

    axes: List[ValidationRatiosAxis]
    """By that thing."""
    pairs: List[ValidationRatiosPair]
    """The pairs."""


class ValidationCrossValidation(Record):
    """With several sources: the speed of each GPU fitted once more, to all sources, and to all but the one that is
    predicted."""

    name: str
    """Rows that are scored: all, dense or moe."""
    fitted_median_abs_error: float
    """Median error of the rows that the fit saw. [fraction]"""
    left_out_median_abs_error: float
    """Median error of the rows that it did not see. [fraction]"""


class ValidationUnsimulated(Record):
    """Rows that made no scenario or failed."""

    id: str
    """Its id."""
    reason: str
    """Why."""


class Validation(Record):
    """A validation: its keys as attributes."""

    rows: List[Run]
    """Runs, in the order of the table."""
    strata: List[ValidationStrata]
    """Scores of rows that are alike in something."""
    memory: ValidationMemory
    """Memory of runs that state it."""
    ratios: ValidationRatios
    """Ratios of two runs of one source that differ in one thing."""
    cross_validation: List[ValidationCrossValidation]
    """With several sources: the speed of each GPU fitted once more, to all sources, and to all but the one that is
    predicted."""
    unsimulated: List[ValidationUnsimulated]
    """Rows that made no scenario or failed."""


class ExplainedRunTime(Record):
    """Where the time of the typical scenario goes, most time first."""

    name: str
    """A kind of kernel, exposed AXIS, or bubble."""
    part: Optional[str]
    """The part of the interval that it belongs to, as in INTERVAL.shares; null for the bubble, which is off as the
    kernels are."""
    time_s: float
    """Its time; all of them add up to the step. [s]"""
    share: float
    """The same of the step. [fraction]"""
    off_by: float
    """What of the step it could be wrong by, in nine cases of ten. [fraction]"""


class ExplainedRunNearestDiffersIn(Record):
    """What the two differ in, what matters most first."""

    what: str
    """What."""
    here: str
    """Its value in the run that is explained."""
    there: str
    """Its value in the other."""


class ExplainedRunNearest(Record):
    """The measured run that is most like it; null where no other was measured."""

    row: Run
    """That run."""
    distance: float
    """How far it is (run_distance.h). [number]"""
    differs_in: List[ExplainedRunNearestDiffersIn]
    """What the two differ in, what matters most first."""
    predicted_ratio: float
    """Predicted step time of this run over that of the nearest. [ratio]"""
    measured_ratio: Optional[float]
    """The same, measured; null where this one was not. [ratio]"""
    step_time_like_it_s: float
    """The step time if this run were off as the nearest one is. [s]"""


class ExplainedRun(Record):
    """An explained run: its keys as attributes."""

    row: Run
    """The run."""
    interval_s: Optional[Interval]
    """The interval of its prediction; null where there is no prediction."""
    times: List[ExplainedRunTime]
    """Where the time of the typical scenario goes, most time first."""
    nearest: Optional[ExplainedRunNearest]
    """The measured run that is most like it; null where no other was measured."""


class MeasuredStepPart(Record):
    """What adds up to the step."""

    name: str
    """Its name."""
    simulated_s: float
    """Its time. [s]"""
    measured_s: float
    """The same, measured. [s]"""


class MeasuredStepKind(Record):
    """Kinds of tasks of a rank, overlapped or not, most measured time first."""

    name: str
    """A family of kernels, or a collective with its axis where that is known."""
    simulated_count: float
    """How many; 0 where a side has no such tasks. [number]"""
    measured_count: float
    """The same, measured. [number]"""
    simulated_s: float
    """Their time. [s]"""
    measured_s: float
    """The same, measured. [s]"""
    by_order: Optional[float]
    """Where there are equally many: the median of abs(simulated / measured - 1) of the first and the first, the second
    and the second and so on; else null. [share]"""


class MeasuredStepOtherKernel(Record):
    """The largest kernels of no family of their own, of all traced ranks."""

    name: str
    """Its name."""
    count: float
    """How many of it ran. [number]"""
    time_s: float
    """Their time. [s]"""


class MeasuredStep(Record):
    """A measured step: its keys as attributes."""

    scenario: str
    """Its name."""
    ranks: List[int]
    """Ranks that were traced."""
    world_size: int
    """Those of the run. [ranks]"""
    device: str
    """The GPU, as the first trace names it."""
    step: str
    """The ProfilerStep of the first trace; empty where it marks none."""
    simulated_s: float
    """The step, the mean over the ranks that were traced. [s]"""
    measured_s: float
    """The same, measured. [s]"""
    parts: List[MeasuredStepPart]
    """What adds up to the step."""
    kinds: List[MeasuredStepKind]
    """Kinds of tasks of a rank, overlapped or not, most measured time first."""
    other_kernels: List[MeasuredStepOtherKernel]
    """The largest kernels of no family of their own, of all traced ranks."""
    notes: List[str]
    """What was assumed, and what is missing."""


class Import(Record):
    """An import: its keys as attributes."""

    kind: str
    """import."""
    from_: str
    """The kind of file."""
    files: List[str]
    """The paths that were read."""
    assumed: List[str]
    """What the file does not say, and what was taken for it."""
    warnings: List[str]
    """What is left out of what the file means, and what of it is unwise."""
    ignored: List[str]
    """What has no counterpart, by its name in the file."""


class TracedStepRankKind(Record):
    """All kinds, overlapped or not."""

    name: str
    """Its name."""
    count: float
    """How many of it ran. [number]"""
    time_s: float
    """Their time. [s]"""


class TracedStepRankOtherKernel(Record):
    """The largest kernels of no family."""

    name: str
    """Its name."""
    count: float
    """How many of it ran. [number]"""
    time_s: float
    """Their time. [s]"""


class TracedStepRank(Record):
    """One entry for each trace."""

    rank: Optional[int]
    """Its number; null where the trace does not tell. [rank]"""
    file: str
    """The trace."""
    device: str
    """The GPU; empty where the trace does not tell."""
    step: str
    """The ProfilerStep; empty where the trace marks none."""
    step_time_s: float
    """The time of the step, of which the next four are the parts. [s]"""
    compute_s: float
    """Kernels run. [s]"""
    optimizer_s: float
    """Kernels of the optimizer run. [s]"""
    exposed_s: float
    """Communication runs, and no kernel. [s]"""
    idle_s: float
    """Nothing runs but copies. [s]"""
    kinds: List[TracedStepRankKind]
    """All kinds, overlapped or not."""
    other_kernels: List[TracedStepRankOtherKernel]
    """The largest kernels of no family."""


class TracedStep(Record):
    """A traced step: its keys as attributes."""

    world_size: int
    """Those of the run; 0 where no trace tells. [ranks]"""
    ranks: List[TracedStepRank]
    """One entry for each trace."""
