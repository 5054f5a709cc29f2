// Hints on data, loaders, checkpoints and memory.
#include "cases.h"
#include "user_files.h"

namespace phalanx::doctor::test {
namespace {

void script(Situation& s, const std::string& text) { give(s, "train.py", "script", text); }

std::vector<Case> script_cases() {
  return {
      hit("DATA-DATAPARALLEL", "nn.DataParallel", single_machine,
          [](Situation& s) { script(s, "model = nn.DataParallel(model).cuda()\n"); }),
      miss("DATA-DATAPARALLEL", "DistributedDataParallel", single_machine,
           [](Situation& s) { script(s, "model = DistributedDataParallel(model, device_ids=[rank])\n"); }),
      miss("DATA-DATAPARALLEL", "the branch without a launcher", single_machine,
           [](Situation& s) {
             script(s,
                    "if args.distributed:\n    model = nn.parallel.DistributedDataParallel(model)\nelse:\n    model = "
                    "nn.DataParallel(model)\n");
           }),
      hit("DATA-TRAINER-DP", "python trainer_demo.py, two cards", single_machine,
          [](Situation& s) {
            script(s, "from transformers import Trainer\ntrainer = Trainer(model=model)\n");
            s.hosts[0].ranks = s.job.world = 1;
          }),
      miss("DATA-TRAINER-DP", "one rank per card", single_machine,
           [](Situation& s) { script(s, "from transformers import Trainer\ntrainer = Trainer(model=model)\n"); }),
      miss("DATA-TRAINER-DP", "CUDA_VISIBLE_DEVICES=0", single_machine,
           [](Situation& s) {
             script(s, "from transformers import Trainer\ntrainer = Trainer(model=model)\n");
             s.hosts[0].ranks = s.job.world = 1;
             s.job.set = {{"CUDA_VISIBLE_DEVICES", "0"}};
           }),
      hit("DATA-SET-EPOCH", "never called", single_machine,
          [](Situation& s) { script(s, "sampler = DistributedSampler(data)\nfor epoch in range(9):\n    train()\n"); }),
      miss("DATA-SET-EPOCH", "called", single_machine,
           [](Situation& s) {
             script(s, "sampler = DistributedSampler(data)\nfor epoch in range(9):\n    sampler.set_epoch(epoch)\n    train()\n");
           }),
      miss("DATA-SET-EPOCH", "no shuffling", single_machine,
           [](Situation& s) { script(s, "sampler = DistributedSampler(data, shuffle=False)\nfor epoch in range(9):\n    train()\n"); }),
      hit("DATA-NO-SAMPLER", "DDP with a plain loader", single_machine,
          [](Situation& s) { script(s, "model = DistributedDataParallel(model)\nloader = DataLoader(data, shuffle=True)\n"); }),
      miss("DATA-NO-SAMPLER", "with a sampler", single_machine,
           [](Situation& s) { script(s, "model = DistributedDataParallel(model)\nloader = DataLoader(data, sampler=sampler)\n"); }),
      hit("DATA-UNEVEN", "an IterableDataset under DDP", single_machine,
          [](Situation& s) { script(s, "class Data(IterableDataset):\n    pass\nmodel = DistributedDataParallel(model)\n"); }),
      miss("DATA-UNEVEN", "inside Join", single_machine,
           [](Situation& s) {
             script(s,
                    "class Data(IterableDataset):\n    pass\nmodel = DistributedDataParallel(model)\nwith Join([model]):\n    train()\n");
           }),
      hit("DATA-RANK0-COLLECTIVE", "DeepSpeed saves on rank 0", single_machine,
          [](Situation& s) { script(s, "import deepspeed\nif dist.get_rank() == 0:\n    model_engine.save_checkpoint(path)\n"); }),
      hit("DATA-RANK0-COLLECTIVE", "FSDP's state_dict on rank 0", single_machine,
          [](Situation& s) { script(s, "model = FSDP(model)\nif rank == 0:\n    log()\n    state = model.state_dict()\n"); }),
      miss(
          "DATA-RANK0-COLLECTIVE", "gathered by all, written by one", single_machine,
          [](Situation& s) { script(s, "model = FSDP(model)\nstate = model.state_dict()\nif rank == 0:\n    torch.save(state, path)\n"); }),
      miss("DATA-RANK0-COLLECTIVE", "behind the if", single_machine,
           [](Situation& s) { script(s, "import deepspeed\nif rank == 0:\n    log()\nmodel_engine.save_checkpoint(path)\n"); }),
      hit("DATA-ALL-WRITE", "torch.save without a guard", single_machine,
          [](Situation& s) {
            script(s, "model = DistributedDataParallel(net, sampler=x)\ntorch.save(model.module.state_dict(), path)\n");
          }),
      miss("DATA-ALL-WRITE", "on rank 0", single_machine,
           [](Situation& s) {
             script(s, "model = DistributedDataParallel(net, sampler=x)\nif rank == 0:\n    torch.save(model.module.state_dict(), path)\n");
           }),
  };
}

std::vector<Case> loader_cases() {
  return {
      hit("DATA-MODULE-PREFIX", "the wrapper is saved", single_machine,
          [](Situation& s) {
            script(s, "model = DistributedDataParallel(net)\nif rank == 0:\n    torch.save(model.state_dict(), path)\n");
          }),
      miss("DATA-MODULE-PREFIX", "model.module", single_machine,
           [](Situation& s) {
             script(s, "model = DistributedDataParallel(net)\nif rank == 0:\n    torch.save(model.module.state_dict(), path)\n");
           }),
      hit("DATA-WORKERS", "3 × GPUs in each of 8 ranks, 64 cores", bond_infiniband,
          [](Situation& s) { script(s, "loader = DataLoader(data, num_workers=3*args.num_gpus, sampler=sampler, drop_last=True)\n"); }),
      hit("DATA-WORKERS", "--num_workers 32", bond_infiniband,
          [](Situation& s) {
            machine::LaunchLine l = launch_line("python", "train.py");
            l.arguments = {"--num_workers", "32"};
            give(s, l);
          }),
      miss("DATA-WORKERS", "16 in each of 8 ranks, 64 cores", bond_infiniband,
           [](Situation& s) { script(s, "loader = DataLoader(data, num_workers=16)\n"); }),
      miss("DATA-WORKERS", "a value we cannot know", bond_infiniband,
           [](Situation& s) { script(s, "loader = DataLoader(data, num_workers=args.workers)\n"); }),
  };
}

void deepspeed(Situation& s, const std::string& zero) { give(s, "ds.json", "deepspeed", "{\"zero_optimization\": {" + zero + "}}"); }

std::vector<Case> config_cases() {
  return {
      hit("DATA-BATCH", "1 × 32 ranks × 2", bond_infiniband,
          [](Situation& s) {
            give(s, "train.yaml", "llamafactory", "stage: sft\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n");
          }),
      hit("DATA-BATCH", "--batch_size 8", bond_infiniband,
          [](Situation& s) {
            machine::LaunchLine l = launch_line("python", "train.py");
            l.arguments = {"--batch_size=8"};
            give(s, l);
          }),
      miss("DATA-BATCH", "not told", bond_infiniband, [](Situation& s) { give(s, "train.yaml", "llamafactory", "stage: sft\n"); }),
      hit("DATA-PREPROCESS-WORKERS", "16 of 256 cores", bond_infiniband,
          [](Situation& s) {
            give(s, "train.yaml", "llamafactory", "dataset: mine\npreprocessing_num_workers: 16\n");
            for (HostView& h : s.hosts) h.facts.machine.cpus_usable = 256;
          }),
      miss("DATA-PREPROCESS-WORKERS", "128 of 256 cores", bond_infiniband,
           [](Situation& s) {
             give(s, "train.yaml", "llamafactory", "dataset: mine\npreprocessing_num_workers: 128\n");
             for (HostView& h : s.hosts) h.facts.machine.cpus_usable = 256;
           }),
      hit("DATA-ZERO3-MERGE", "stage 3, gathered on save", bond_infiniband,
          [](Situation& s) { deepspeed(s, "\"stage\": 3, \"stage3_gather_16bit_weights_on_model_save\": true"); }),
      miss("DATA-ZERO3-MERGE", "stage 2 has nothing to gather", bond_infiniband,
           [](Situation& s) { deepspeed(s, "\"stage\": 2, \"stage3_gather_16bit_weights_on_model_save\": true"); }),
      hit("DATA-OFFLOAD-MEMORY", "32 GiB for two 24 GiB cards", single_machine,
          [](Situation& s) {
            deepspeed(s, "\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}");
            s.hosts[0].facts.machine.memory_available_bytes = int64_t{32} << 30;
          }),
      miss("DATA-OFFLOAD-MEMORY", "480 GiB", single_machine,
           [](Situation& s) { deepspeed(s, "\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}"); }),
  };
}

}  // namespace

std::vector<Case> data_cases() {
  std::vector<Case> all = script_cases();
  for (auto* part : {loader_cases, config_cases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
