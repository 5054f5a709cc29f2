// The table of settings, in the order of --help.
#include "engine/train/config.h"

namespace phalanx::engine::train {
namespace {

constexpr double kMany = 1e12;

std::vector<Setting> of_run(Config& c) {
  return {
      {"out", &c.out, 0, 0, {}, "folder for checkpoints, logs, loss.svg and sample.txt"},
      {"seed", &c.seed, 0, kMany, {}, "seed of the initial weights, the data order and the sample"},
      {"device", &c.device, 0, 0, "auto|cpu|cuda", "auto: use GPUs if there is one for every rank"},
  };
}

std::vector<Setting> of_data(Config& c) {
  return {
      {"data.corpus", &c.data.corpus, 0, 0, {}, "text file to train on, one token per byte; short for data.files"},
      {"data.files", &c.data.files, 0, 0, {}, "files, folders and globs to train on, separated by commas"},
      {"data.validation_files", &c.data.validation_files, 0, 0, {}, "the same for validation; overrides data.validation"},
      {"data.validation", &c.data.validation, 0, 0.5, {}, "fraction of each file, at its end, held out for validation"},
      {"data.format", &c.data.format, 0, 0, "auto|text|lines|jsonl|tokens|nanogpt", "auto: detected from the file name"},
      {"data.field", &c.data.field, 0, 0, {}, "jsonl: field to train on"},
      {"data.prompt_field", &c.data.prompt_field, 0, 0, {}, "jsonl: field placed before it as context, without loss"},
      {"data.documents", &c.data.documents, 0, 0, "join|apart", "tokens: whether a window may span documents"},
      {"data.shuffle", &c.data.shuffle, 0, 0, "on|off", "new order in every epoch, the same as PyTorch's DistributedSampler"},
      {"data.streaming", &c.data.streaming, 0, 0, "on|off", "lines, jsonl: read sequentially without an index; shuffle in a buffer"},
      {"data.shuffle_buffer", &c.data.shuffle_buffer, 0, 32768, {}, "size of a stream's shuffle buffer, in items"},
      {"data.remainder", &c.data.remainder, 0, 0, "drop|pad|keep", "last partial batch: drop it, pad it, or let ranks differ"},
      {"data.workers", &c.data.workers, 0, 64, {}, "threads per rank that prefetch data; 0: none"},
      {"data.prefetch", &c.data.prefetch, 1, 1024, {}, "steps that each of these threads prefetches"},
      {"data.pad_token", &c.data.pad_token, 0, 4294967295.0, {}, "token that fills shorter rows of a batch"},
      {"data.pad_multiple", &c.data.pad_multiple, 1, 65536, {}, "round padded lengths up to a multiple of this"},
  };
}

std::vector<Setting> of_model(Config& c) {
  return {
      {"model.layers", &c.model.layers, 1, 1000, {}, "blocks of attention and MLP"},
      {"model.heads", &c.model.heads, 1, 1000, {}, "attention heads; divides the width"},
      {"model.width", &c.model.width, 1, 65536, {}, "size of the embedding of a token"},
      {"model.context", &c.model.context, 1, 65536, {}, "context length in tokens"},
      {"model.vocabulary", &c.model.vocabulary, 0, 4294967296.0, {}, "vocabulary size; 0: that of the data"},
      {"model.dropout", &c.model.dropout, 0, 0.9, {}, "dropout probability"},
      {"model.kernels", &c.model.kernels, 0, 0, "fused|plain", "fused: one pass per layer on CPU; plain: torch's operators"},
      {"model.activation_checkpointing", &c.model.activation_checkpointing, 0, 0, "off|blocks",
       "blocks: recompute in backward, to save memory"},
  };
}

std::vector<Setting> of_training(Config& c) {
  return {
      {"train.steps", &c.train.steps, 1, kMany, {}, "optimizer steps"},
      {"train.epochs", &c.train.epochs, 0, kMany, {}, "passes over the data; 0: determined by train.steps"},
      {"train.batch", &c.train.batch, 1, 1e6, {}, "sequences per step over all ranks"},
      {"train.accumulate", &c.train.accumulate, 1, 1e6, {}, "micro-batches per step and rank, to save memory"},
      {"train.log_every", &c.train.log_every, 1, kMany, {}, "steps between two progress lines"},
      {"train.precision", &c.train.precision, 0, 0, "fp32|bf16|bf16-weights|fp16",
       "bf16, fp16: by autocast; bf16-weights: with fp32 masters"},
      {"train.loss_scaling", &c.train.loss_scaling, 0, 0, "auto|on|off", "auto: on with fp16, where small gradients would underflow"},
      {"train.deterministic", &c.train.deterministic, 0, 0, "on|off", "same summation order in every parallel.mode; deterministic kernels"},
      {"parallel.mode", &c.parallel.mode, 0, 0, "ddp|zero1|zero2|zero3", "what to shard: nothing, optimizer, gradients, parameters"},
      {"parallel.share_parameters", &c.parallel.share_parameters, 0, 0, "auto|off",
       "auto: one copy of the parameters per host where possible"},
      {"parallel.bucket_mb", &c.parallel.bucket_mb, 0.001, 65536, {}, "size of a gradient bucket"},
      {"parallel.live_units", &c.parallel.live_units, 1, 1000, {}, "zero3: parts of the model gathered at the same time"},
      {"parallel.persistent_elements", &c.parallel.persistent_elements, 0, kMany, {}, "zero3: keep smaller parameters unsharded"},
      {"parallel.offload", &c.parallel.offload, 0, 0, "on|off", "on a GPU: optimizer states and master weights in host memory"},
  };
}

std::vector<Setting> of_optimizer(Config& c) {
  return {
      {"optimizer.name", &c.optimizer.name, 0, 0, "adamw|sgd|lion", "sgd with momentum"},
      {"optimizer.lr", &c.optimizer.lr, 0, 100, {}, "peak learning rate, after warm-up"},
      {"optimizer.min_lr", &c.optimizer.min_lr, 0, 100, {}, "final learning rate of the schedule"},
      {"optimizer.schedule", &c.optimizer.schedule, 0, 0, "constant|linear|cosine", "learning rate schedule after warm-up"},
      {"optimizer.warmup", &c.optimizer.warmup, 0, kMany, {}, "warm-up steps, in which the learning rate rises from 0"},
      {"optimizer.warmup_ratio", &c.optimizer.warmup_ratio, 0, 1, {}, "warm-up as a fraction of all steps; overrides warmup unless 0"},
      {"optimizer.weight_decay", &c.optimizer.weight_decay, 0, 10, {}, "weight decay of weight matrices; none for biases and norms"},
      {"optimizer.beta1", &c.optimizer.beta1, 0, 0.999999, {}, "adamw, lion: decay of the mean"},
      {"optimizer.beta2", &c.optimizer.beta2, 0, 0.999999, {}, "adamw: decay of the variance; lion: of its memory"},
      {"optimizer.epsilon", &c.optimizer.epsilon, 0, 1, {}, "AdamW's guard against division by zero"},
      {"optimizer.momentum", &c.optimizer.momentum, 0, 0.999999, {}, "sgd's"},
      {"optimizer.clip", &c.optimizer.clip, 0, 1e9, {}, "maximum global gradient norm; 0: no limit"},
  };
}

std::vector<Setting> of_saving(Config& c) {
  return {
      {"validation.every", &c.validation.every, 0, kMany, {}, "steps between validations; 0: none"},
      {"validation.batches", &c.validation.batches, 1, 1e9, {}, "batches per validation"},
      {"validation.patience", &c.validation.patience, 0, 1e9, {}, "stop after this many validations without a better loss; 0: never"},
      {"validation.min_delta", &c.validation.min_delta, 0, 1e9, {}, "minimum decrease that counts as a better loss"},
      {"checkpoint.every", &c.checkpoint.every, 0, kMany, {}, "steps between checkpoints; 0: only one at the end"},
      {"checkpoint.keep", &c.checkpoint.keep, 0, 1e6, {}, "number of newest checkpoints to keep; 0: all"},
      {"checkpoint.existing", &c.checkpoint.existing, 0, 0, "resume|refuse|replace", "what to do with checkpoints already in `out`"},
      {"checkpoint.background", &c.checkpoint.background, 0, 0, "on|off", "write in the background while training continues"},
      {"checkpoint.best", &c.checkpoint.best, 0, 0, "on|off", "also keep the checkpoint with the best validation loss"},
      {"checkpoint.layout", &c.checkpoint.layout, 0, 0, "auto|sharded|gathered",
       "auto: one shard per rank on a shared folder, otherwise rank 0 writes all"},
      {"metrics.tensorboard", &c.metrics.tensorboard, 0, 0, "on|off", "scalars for TensorBoard, in <out>/tensorboard"},
      {"metrics.mfu", &c.metrics.mfu, 0, 0, "on|off", "on a CPU, its peak is measured at the start (0.1 s)"},
      {"sample.bytes", &c.sample.bytes, 0, 1e6, {}, "length of the sample text written at the end; 0: none"},
      {"sample.temperature", &c.sample.temperature, 0, 100, {}, "sampling temperature; 0: always the most likely byte"},
      {"sample.top_k", &c.sample.top_k, 0, 256, {}, "sample among this many most likely bytes; 0: all"},
      {"sample.prompt", &c.sample.prompt, 0, 0, {}, "text that the sample continues"},
  };
}

}  // namespace

std::vector<Setting> settings(Config& config) {
  std::vector<Setting> table;
  for (auto* part : {of_run, of_data, of_model, of_training, of_optimizer, of_saving})
    for (Setting& setting : part(config)) table.push_back(std::move(setting));
  return table;
}

}  // namespace phalanx::engine::train
