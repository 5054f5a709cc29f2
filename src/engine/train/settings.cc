// The table of settings, in the order of --help.
#include <iterator>

#include "engine/train/config.h"

namespace phalanx::engine::train {
namespace {

constexpr double kMany = 1e12;

void of_run(Config& c, std::vector<Setting>& table) {
  const Setting rows[] = {
      {"out", &c.out, 0, 0, {}, "folder for checkpoints, logs, loss.svg and sample.txt"},
      {"seed", &c.seed, 0, kMany, {}, "of the initial weights, the order of the data and the sample"},
      {"device", &c.device, 0, 0, {"auto", "cpu", "cuda"}, "auto takes a GPU when there is one for every rank"},
  };
  table.insert(table.end(), std::begin(rows), std::end(rows));
}

void of_data(Config& c, std::vector<Setting>& table) {
  const Setting rows[] = {
      {"data.corpus", &c.data.corpus, 0, 0, {}, "the text to learn; a token is a byte. Short for data.files"},
      {"data.files", &c.data.files, 0, 0, {}, "files, folders and globs to learn from, separated by commas"},
      {"data.validation_files", &c.data.validation_files, 0, 0, {}, "the same for validation; wins over data.validation"},
      {"data.validation", &c.data.validation, 0, 0.5, {}, "share of each file, from its end, kept for validation"},
      {"data.format", &c.data.format, 0, 0, {"auto", "text", "lines", "jsonl", "tokens", "nanogpt"}, "auto goes by the file's name"},
      {"data.field", &c.data.field, 0, 0, {}, "jsonl: the field that is learned"},
      {"data.prompt_field", &c.data.prompt_field, 0, 0, {}, "jsonl: a field in front of it that is read but not learned"},
      {"data.documents", &c.data.documents, 0, 0, {"join", "apart"}, "tokens: whether windows reach over the end of a document"},
      {"data.shuffle", &c.data.shuffle, 0, 0, {"on", "off"}, "a new order in each epoch, PyTorch's DistributedSampler's"},
      {"data.streaming", &c.data.streaming, 0, 0, {"on", "off"}, "lines, jsonl: read in order, without an index, mixed in a buffer"},
      {"data.shuffle_buffer", &c.data.shuffle_buffer, 0, 65536, {}, "items in a stream's buffer; used when data.shuffle is on"},
      {"data.remainder", &c.data.remainder, 0, 0, {"drop", "pad", "keep"}, "an epoch's end: leave out, repeat, or uneven ranks"},
      {"data.workers", &c.data.workers, 0, 64, {}, "threads per rank that read ahead; 0: none"},
      {"data.prefetch", &c.data.prefetch, 1, 1024, {}, "steps that each of them reads ahead"},
      {"data.pad_token", &c.data.pad_token, 0, 4294967295.0, {}, "fills up rows that are shorter than others of their batch"},
      {"data.pad_multiple", &c.data.pad_multiple, 1, 65536, {}, "padded lengths are rounded up to a multiple of it"},
  };
  table.insert(table.end(), std::begin(rows), std::end(rows));
}

void of_model(Config& c, std::vector<Setting>& table) {
  const Setting rows[] = {
      {"model.layers", &c.model.layers, 1, 1000, {}, "blocks of attention and MLP"},
      {"model.heads", &c.model.heads, 1, 1000, {}, "attention heads; divides the width"},
      {"model.width", &c.model.width, 1, 65536, {}, "size of a token's vector"},
      {"model.context", &c.model.context, 1, 65536, {}, "tokens seen at once"},
      {"model.vocabulary", &c.model.vocabulary, 0, 4294967296.0, {}, "tokens it knows; 0: what the data has"},
      {"model.dropout", &c.model.dropout, 0, 0.9, {}, "share of values left out in training"},
      {"model.kernels", &c.model.kernels, 0, 0, {"fused", "plain"}, "fused: one pass per layer on CPU; plain: torch's operators"},
      {"model.activation_checkpointing",
       &c.model.activation_checkpointing,
       0,
       0,
       {"off", "blocks"},
       "blocks: computed again in backward, to save memory"},
  };
  table.insert(table.end(), std::begin(rows), std::end(rows));
}

void of_training(Config& c, std::vector<Setting>& table) {
  const Setting rows[] = {
      {"train.steps", &c.train.steps, 1, kMany, {}, "optimizer steps"},
      {"train.epochs", &c.train.epochs, 0, kMany, {}, "times through the data; 0: as many as train.steps takes"},
      {"train.batch", &c.train.batch, 1, 1e6, {}, "sequences per step, of all ranks together"},
      {"train.accumulate", &c.train.accumulate, 1, 1e6, {}, "pieces a rank cuts its share of a batch into, to save memory"},
      {"train.log_every", &c.train.log_every, 1, kMany, {}, "steps between two printed losses"},
      {"train.precision",
       &c.train.precision,
       0,
       0,
       {"fp32", "bf16", "bf16-weights", "fp16"},
       "bf16, fp16: by autocast; bf16-weights: with fp32 masters"},
      {"train.loss_scaling", &c.train.loss_scaling, 0, 0, {"auto", "on", "off"}, "auto: with fp16, whose small gradients would vanish"},
      {"train.deterministic",
       &c.train.deterministic,
       0,
       0,
       {"on", "off"},
       "one order of sums in every parallel.mode, deterministic kernels"},
      {"parallel.mode",
       &c.parallel.mode,
       0,
       0,
       {"ddp", "zero1", "zero2", "zero3"},
       "what ranks share out: nothing, optimizer, gradients, parameters"},
      {"parallel.share_parameters",
       &c.parallel.share_parameters,
       0,
       0,
       {"auto", "off"},
       "auto: one copy for the ranks of a host where they can have it"},
      {"parallel.bucket_mb", &c.parallel.bucket_mb, 0.001, 65536, {}, "gradients that travel together"},
      {"parallel.live_units", &c.parallel.live_units, 1, 1000, {}, "zero3: parts of the model that are whole at a time"},
      {"parallel.persistent_elements", &c.parallel.persistent_elements, 0, kMany, {}, "zero3: smaller parameters stay whole"},
      {"parallel.offload", &c.parallel.offload, 0, 0, {"on", "off"}, "on a GPU: optimizer states and master weights in host memory"},
  };
  table.insert(table.end(), std::begin(rows), std::end(rows));
}

void of_optimizer(Config& c, std::vector<Setting>& table) {
  const Setting rows[] = {
      {"optimizer.name", &c.optimizer.name, 0, 0, {"adamw", "sgd", "lion"}, "sgd with momentum"},
      {"optimizer.lr", &c.optimizer.lr, 0, 100, {}, "the learning rate after the warm-up"},
      {"optimizer.min_lr", &c.optimizer.min_lr, 0, 100, {}, "where the schedule ends"},
      {"optimizer.schedule", &c.optimizer.schedule, 0, 0, {"constant", "linear", "cosine"}, "of the learning rate behind the warm-up"},
      {"optimizer.warmup", &c.optimizer.warmup, 0, kMany, {}, "steps in which the learning rate rises from 0"},
      {"optimizer.warmup_ratio", &c.optimizer.warmup_ratio, 0, 1, {}, "the same as a share of all steps; wins where it is not 0"},
      {"optimizer.weight_decay", &c.optimizer.weight_decay, 0, 10, {}, "of weight matrices; biases and norms have none"},
      {"optimizer.beta1", &c.optimizer.beta1, 0, 0.999999, {}, "adamw, lion: decay of the mean"},
      {"optimizer.beta2", &c.optimizer.beta2, 0, 0.999999, {}, "adamw: decay of the variance; lion: of its memory"},
      {"optimizer.epsilon", &c.optimizer.epsilon, 0, 1, {}, "AdamW's guard against division by zero"},
      {"optimizer.momentum", &c.optimizer.momentum, 0, 0.999999, {}, "sgd's"},
      {"optimizer.clip", &c.optimizer.clip, 0, 1e9, {}, "largest global gradient norm; 0 for no limit"},
  };
  table.insert(table.end(), std::begin(rows), std::end(rows));
}

void of_saving(Config& c, std::vector<Setting>& table) {
  const Setting rows[] = {
      {"validation.every", &c.validation.every, 0, kMany, {}, "steps between validations; 0 for none"},
      {"validation.batches", &c.validation.batches, 1, 1e9, {}, "batches in a validation"},
      {"validation.patience", &c.validation.patience, 0, 1e9, {}, "validations without a better loss until the training stops; 0: never"},
      {"validation.min_delta", &c.validation.min_delta, 0, 1e9, {}, "by how much a loss has to be lower to be better"},
      {"checkpoint.every", &c.checkpoint.every, 0, kMany, {}, "steps between checkpoints; 0 for only one at the end"},
      {"checkpoint.keep", &c.checkpoint.keep, 0, 1e6, {}, "newest checkpoints to keep; 0 for all"},
      {"checkpoint.existing",
       &c.checkpoint.existing,
       0,
       0,
       {"resume", "refuse", "replace"},
       "what to do with checkpoints in `out` at the start"},
      {"checkpoint.background", &c.checkpoint.background, 0, 0, {"on", "off"}, "write while training goes on"},
      {"checkpoint.best", &c.checkpoint.best, 0, 0, {"on", "off"}, "save behind each validation that is the best so far, and keep it"},
      {"checkpoint.layout",
       &c.checkpoint.layout,
       0,
       0,
       {"auto", "sharded", "gathered"},
       "auto: each rank writes its part where all share the folder, else rank 0 all"},
      {"metrics.tensorboard", &c.metrics.tensorboard, 0, 0, {"on", "off"}, "scalars for TensorBoard, in <out>/tensorboard"},
      {"metrics.mfu", &c.metrics.mfu, 0, 0, {"on", "off"}, "on a CPU its peak is measured at the start, 0.1 s"},
      {"sample.bytes", &c.sample.bytes, 0, 1e6, {}, "length of the text written at the end; 0 for none"},
      {"sample.temperature", &c.sample.temperature, 0, 100, {}, "0 takes the most likely byte each time"},
      {"sample.top_k", &c.sample.top_k, 0, 256, {}, "draws among this many most likely bytes; 0 for all"},
      {"sample.prompt", &c.sample.prompt, 0, 0, {}, "what the sample continues"},
  };
  table.insert(table.end(), std::begin(rows), std::end(rows));
}

}  // namespace

std::vector<Setting> settings(Config& config) {
  std::vector<Setting> table;
  for (auto* part : {of_run, of_data, of_model, of_training, of_optimizer, of_saving}) part(config, table);
  return table;
}

}  // namespace phalanx::engine::train
