// Configurations of accelerate, DeepSpeed, LLaMA-Factory and Lightning as in the field notes, cut to what matters; Python's ports.
#include "base/text.h"
#include "user_files.h"

namespace phalanx::doctor::test {
namespace {

// The pdsh configuration of a field note for 2 × 8 GPUs.
const std::string kAccelerate =
    "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  deepspeed_hostfile: ./path/hostfile\n  deepspeed_multinode_launcher: "
    "standard\n"
    "  gradient_accumulation_steps: 1\n  zero3_init_flag: true\n  zero3_save_16bit_model: true\n  zero_stage: 3\n"
    "distributed_type: DEEPSPEED\ndowncast_bf16: 'no'\ndynamo_config: {}\nfsdp_config: {}\nmachine_rank: 0\nmain_process_port: 21011\n"
    "mixed_precision: fp16\nnum_machines: 4\nnum_processes: 32\nrdzv_backend: static\ntpu_env: []\nuse_cpu: false\n";

void accelerate(Situation& s, const std::string& from = "", const std::string& to = "") {
  give(s, "acc.yaml", "accelerate", from.empty() ? kAccelerate : base::replace_all(kAccelerate, from, to));
  machine::LaunchLine l = launch_line("accelerate", "train.py");
  l.options = {{"config_file", "acc.yaml"}, {"machine_rank", "${RANK}"}};
  give(s, l);
}
void without_rank(Situation& s) {
  for (HostView& h : s.hosts) h.facts.command.launches[0].options.erase("machine_rank");
}
void hostfile(Situation& s, int slots, const std::string& last = "") {
  std::string text = "# the cluster\n";
  for (const HostView& h : s.hosts) text += h.name + " slots=" + std::to_string(slots) + "\n";
  give(s, "path/hostfile", "hostfile", text + last);
}

std::vector<Case> accelerate_cases() {
  return {
      hit("CMD-ACCELERATE-KEY", "num_proceses", bond_infiniband, [](Situation& s) { accelerate(s, "num_processes", "num_proceses"); }),
      hit("CMD-ACCELERATE-KEY", "zero_stages in its section", bond_infiniband,
          [](Situation& s) { accelerate(s, "zero_stage", "zero_stages"); }),
      miss("CMD-ACCELERATE-KEY", "the field note's file", bond_infiniband, [](Situation& s) { accelerate(s); }),
      hit("CMD-ACCELERATE-PROCESSES", "8 for 4 × 8 GPUs", bond_infiniband,
          [](Situation& s) { accelerate(s, "num_processes: 32", "num_processes: 8"); }),
      hit("CMD-ACCELERATE-PROCESSES", "30 over 4 machines", bond_infiniband,
          [](Situation& s) { accelerate(s, "num_processes: 32", "num_processes: 30"); }),
      miss("CMD-ACCELERATE-PROCESSES", "32 for 4 × 8 GPUs", bond_infiniband, [](Situation& s) { accelerate(s); }),
      hit("CMD-ACCELERATE-RANK", "one file for all, no --machine_rank", bond_infiniband,
          [](Situation& s) {
            accelerate(s);
            without_rank(s);
          }),
      miss("CMD-ACCELERATE-RANK", "--machine_rank ${RANK}", bond_infiniband, [](Situation& s) { accelerate(s); }),
      miss("CMD-ACCELERATE-RANK", "pdsh numbers the machines", bond_infiniband,
           [](Situation& s) {
             accelerate(s, "standard", "pdsh");
             without_rank(s);
           }),
      hit("CMD-ACCELERATE-MACHINES", "2 of 4 hosts", bond_infiniband,
          [](Situation& s) { accelerate(s, "num_machines: 4", "num_machines: 2"); }),
      miss("CMD-ACCELERATE-MACHINES", "4 of 4 hosts", bond_infiniband, [](Situation& s) { accelerate(s); }),
      hit("CMD-HOSTFILE", "a host twice", bond_infiniband, [](Situation& s) { hostfile(s, 8, "dgx01 slots=8\n"); }),
      hit("CMD-HOSTFILE", "no slots", bond_infiniband, [](Situation& s) { hostfile(s, 8, "dgx05\n"); }),
      miss("CMD-HOSTFILE", "names, slots and a comment", bond_infiniband, [](Situation& s) { hostfile(s, 8, "dgx05 slots=8 # spare\n"); }),
      hit("CMD-HOSTFILE-SLOTS", "16 slots on 8 GPUs", bond_infiniband, [](Situation& s) { hostfile(s, 16); }),
      hit("CMD-HOSTFILE-SLOTS", "not the sum of num_processes", bond_infiniband,
          [](Situation& s) {
            accelerate(s);
            hostfile(s, 4);
          }),
      miss("CMD-HOSTFILE-SLOTS", "8 slots on 8 GPUs, 32 processes", bond_infiniband,
           [](Situation& s) {
             accelerate(s);
             hostfile(s, 8);
           }),
      hit("CMD-PDSH", "deepspeed_multinode_launcher: pdsh", bond_infiniband, [](Situation& s) { accelerate(s, "standard", "pdsh"); }),
      miss("CMD-PDSH", "standard", bond_infiniband, [](Situation& s) { accelerate(s); }),
  };
}

Situation (*const kThirtyTwo)() = bond_infiniband;  // ranks

void deepspeed(Situation& s, const std::string& text) { give(s, "ds.json", "deepspeed", text); }

std::vector<Case> deepspeed_cases() {
  return {
      hit("CMD-DEEPSPEED-KEY", "zero_optimisation", kThirtyTwo,
          [](Situation& s) { deepspeed(s, "{\"zero_optimisation\": {\"stage\": 2}}"); }),
      hit("CMD-DEEPSPEED-KEY", "overlap_com", kThirtyTwo,
          [](Situation& s) { deepspeed(s, "{\"zero_optimization\": {\"stage\": 2, \"overlap_com\": true}}"); }),
      miss("CMD-DEEPSPEED-KEY", "a key of our own that is like no other", kThirtyTwo,
           [](Situation& s) { deepspeed(s, "{\"_comment\": \"x\", \"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}}"); }),
      hit("CMD-DEEPSPEED-BATCH", "32 is not 2 × 1 × 32", kThirtyTwo,
          [](Situation& s) {
            deepspeed(s, "{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 1}");
          }),
      miss("CMD-DEEPSPEED-BATCH", "64 is", kThirtyTwo,
           [](Situation& s) {
             deepspeed(s, "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 1}");
           }),
      miss("CMD-DEEPSPEED-BATCH", "auto", kThirtyTwo,
           [](Situation& s) {
             deepspeed(s, "{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 1}");
           }),
      hit("CMD-DEEPSPEED-PRECISION", "both", kThirtyTwo,
          [](Situation& s) { deepspeed(s, "{\"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}"); }),
      miss("CMD-DEEPSPEED-PRECISION", "one is auto", kThirtyTwo,
           [](Situation& s) { deepspeed(s, "{\"fp16\": {\"enabled\": \"auto\"}, \"bf16\": {\"enabled\": true}}"); }),
      hit("CMD-DEEPSPEED-STAGE", "stage 2", kThirtyTwo, [](Situation& s) { deepspeed(s, "{\"zero_optimization\": {\"stage\": 2}}"); }),
      miss("CMD-DEEPSPEED-STAGE", "no ZeRO", kThirtyTwo, [](Situation& s) { deepspeed(s, "{\"fp16\": {\"enabled\": true}}"); }),
      hit("CMD-DEEPSPEED-OFFLOAD", "offload_param with stage 2", kThirtyTwo,
          [](Situation& s) { deepspeed(s, "{\"zero_optimization\": {\"stage\": 2, \"offload_param\": {\"device\": \"cpu\"}}}"); }),
      hit("CMD-DEEPSPEED-OFFLOAD", "nvme without a path", kThirtyTwo,
          [](Situation& s) { deepspeed(s, "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"nvme\"}}}"); }),
      miss("CMD-DEEPSPEED-OFFLOAD", "offload_param with stage 3", kThirtyTwo,
           [](Situation& s) { deepspeed(s, "{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}}}"); }),
  };
}

const std::string kLlamaFactory =
    "model_name_or_path: /models/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndeepspeed: ds.json\ndataset: mine\n"
    "template: qwen\ncutoff_len: 2048\npreprocessing_num_workers: 16\noutput_dir: saves/qwen\nlogging_steps: 10\nsave_steps: 500\n"
    "plot_loss: true\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nlearning_rate: 1.0e-5\nnum_train_epochs: 3.0\n"
    "lr_scheduler_type: cosine\nwarmup_ratio: 0.1\nbf16: true\nddp_timeout: 180000000\n";

void llamafactory(Situation& s, const std::string& from = "", const std::string& to = "") {
  give(s, "train.yaml", "llamafactory", from.empty() ? kLlamaFactory : base::replace_all(kLlamaFactory, from, to));
}
void output_folder(Situation& s, int64_t entries) {
  for (HostView& h : s.hosts) {
    machine::PathFact p = h.facts.storage.paths[0];
    p.path = "/home/train/work/saves/qwen";
    p.entries = entries;
    h.facts.storage.paths.push_back(p);
  }
}

std::vector<Case> llamafactory_cases() {
  return {
      hit("CMD-LLAMAFACTORY-KEY", "preprocessing_num_works, as in a field note", bond_infiniband,
          [](Situation& s) { llamafactory(s, "preprocessing_num_workers", "preprocessing_num_works"); }),
      miss("CMD-LLAMAFACTORY-KEY", "the example of LLaMA-Factory", bond_infiniband, [](Situation& s) { llamafactory(s); }),
      hit("CMD-LLAMAFACTORY-TIMEOUT", "the default of half an hour", bond_infiniband,
          [](Situation& s) { llamafactory(s, "ddp_timeout: 180000000\n", ""); }),
      miss("CMD-LLAMAFACTORY-TIMEOUT", "prepared before", bond_infiniband,
           [](Situation& s) { llamafactory(s, "ddp_timeout: 180000000\n", "tokenized_path: /data/tok\n"); }),
      miss("CMD-LLAMAFACTORY-TIMEOUT", "180000000", bond_infiniband, [](Situation& s) { llamafactory(s); }),
      hit("CMD-LLAMAFACTORY-OVERWRITE", "three entries are there", bond_infiniband,
          [](Situation& s) {
            llamafactory(s, "plot_loss: true", "overwrite_output_dir: true");
            output_folder(s, 3);
          }),
      miss("CMD-LLAMAFACTORY-OVERWRITE", "the value is empty", bond_infiniband,
           [](Situation& s) {
             llamafactory(s, "plot_loss: true", "overwrite_output_dir: true");
             output_folder(s, 0);
           }),
  };
}

// The trainer of a field note; docker_host_network has 2 hosts × 4 ranks.
void lightning(Situation& s, const std::string& devices, const std::string& timeout = "00:30:00") {
  give(s, "configs/gan.yaml", "lightning",
       "trainer:\n  accelerator: gpu\n  strategy:\n    class_path: lightning.pytorch.strategies.ddp.DDPStrategy\n    init_args:\n"
       "      timeout: \"" +
           timeout + "\"\n      find_unused_parameters: true\n  devices: " + devices + "\n  num_nodes: 2\n");
}

std::vector<Case> lightning_cases() {
  return {
      hit("CMD-LIGHTNING-DEVICES", "devices: [0] × 2 nodes for 8 ranks", docker_host_network, [](Situation& s) { lightning(s, "[0]"); }),
      miss("CMD-LIGHTNING-DEVICES", "devices: 4 × 2 nodes for 8 ranks", docker_host_network, [](Situation& s) { lightning(s, "4"); }),
      miss("CMD-LIGHTNING-DEVICES", "auto", docker_host_network, [](Situation& s) { lightning(s, "auto"); }),
      miss("CMD-LIGHTNING-DEVICES", "--trainer.devices on the command line", docker_host_network,
           [](Situation& s) {
             lightning(s, "[0]");
             machine::LaunchLine l = launch_line("python", "cli.py");
             l.arguments = {"fit", "-c", "configs/gan.yaml", "--trainer.devices=4"};
             give(s, l);
           }),
      hit("CMD-LIGHTNING-DEVICE-LIST", "[0] within CUDA_VISIBLE_DEVICES=2", docker_host_network,
          [](Situation& s) {
            lightning(s, "[0]");
            give(s, in_script(launch_line("python", "cli.py"), {{"CUDA_VISIBLE_DEVICES", "2"}}));
          }),
      miss("CMD-LIGHTNING-DEVICE-LIST", "all are visible", docker_host_network, [](Situation& s) { lightning(s, "[0]"); }),
      hit("CMD-LIGHTNING-TIMEOUT", "ten minutes", docker_host_network, [](Situation& s) { lightning(s, "4", "00:10:00"); }),
      miss("CMD-LIGHTNING-TIMEOUT", "half an hour", docker_host_network, [](Situation& s) { lightning(s, "4"); }),
  };
}

void script(Situation& s, const std::string& text) { give(s, "main.py", "script", text); }

}  // namespace

std::vector<Case> command_config_cases() {
  std::vector<Case> all;
  for (auto* part : {accelerate_cases, deepspeed_cases, llamafactory_cases, lightning_cases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

std::vector<Case> command_python_cases() {
  return {
      hit("CMD-RANDOM-PORT", "54000 + random.randint(0, 888)", single_machine,
          [](Situation& s) { script(s, "rnd_port = 54000 + random.randint(0, 888)\nargs.tcp_port = str(rnd_port)\n"); }),
      hit("CMD-RANDOM-PORT", "RANDOM % 1000 + 50000 in a shell script", single_machine,
          [](Situation& s) { give(s, "run.sh", "shell", "MASTER_PORT=$((RANDOM % 1000 + 50000))\n"); }),
      miss("CMD-RANDOM-PORT", "below the range", single_machine,
           [](Situation& s) { script(s, "port = 20000 + random.randint(0, 888)\n"); }),
      miss("CMD-RANDOM-PORT", "no port", single_machine, [](Situation& s) { script(s, "crop = random.randint(0, 50000)\n"); }),
      hit("CMD-INIT-LOCALHOST", "tcp://localhost on two hosts", docker_host_network,
          [](Situation& s) { script(s, "init_process_group(backend='nccl', init_method='tcp://localhost:'+str(port), rank=rank)\n"); }),
      miss("CMD-INIT-LOCALHOST", "tcp://localhost on one host", single_machine,
           [](Situation& s) { script(s, "init_process_group(backend='nccl', init_method='tcp://localhost:'+str(port), rank=rank)\n"); }),
      miss("CMD-INIT-LOCALHOST", "only a default", docker_host_network,
           [](Situation& s) { script(s, "os.environ.setdefault('MASTER_ADDR', 'localhost')\n"); }),
      hit("CMD-HARD-CODED-PORT", "os.environ['MASTER_PORT'] = '12355'", single_machine,
          [](Situation& s) { script(s, "os.environ['MASTER_PORT'] = '12355'\n"); }),
      miss("CMD-HARD-CODED-PORT", "env://", single_machine,
           [](Situation& s) { script(s, "init_process_group('nccl', init_method='env://')\n"); }),
      miss("CMD-HARD-CODED-PORT", "only where no launcher has set it", single_machine,
           [](Situation& s) { script(s, "if 'MASTER_PORT' not in os.environ:\n    os.environ['MASTER_PORT'] = '12355'\n"); }),
      miss("CMD-HARD-CODED-PORT", "rank 0 serves the store", single_machine,
           [](Situation& s) {
             script(s, "os.environ['MASTER_PORT'] = '12355'\n");
             s.job.serves_store = false;
           }),
  };
}

}  // namespace phalanx::doctor::test
