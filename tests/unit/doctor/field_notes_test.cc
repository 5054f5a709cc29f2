// The field notes' scripts and configurations as real files: read as a probe reads them, judged as `check` judges them. Which codes
// come of each is written down whole, so that a lint that fires too often shows as well as one that is silent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "cases.h"
#include "machine/probe.h"
#include "os/files.h"

namespace phalanx::doctor::test {
namespace {

using Codes = std::set<std::string>;

class FieldNotes : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phalanx-notes-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf " + root_).c_str()), 0); }
  void write(const std::string& name, const std::string& text) {
    const std::string path = root_ + "/home/train/work/" + name;
    ASSERT_TRUE(os::make_folders(path.substr(0, path.find_last_of('/'))).ok());
    ASSERT_TRUE(os::write_file_atomic(path, text).ok());
  }
  Codes codes(Situation s, const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment = {}) {
    machine::ProbeRequest request;
    request.root = root_;
    request.argv = argv;
    request.directory = s.job.directory = "/home/train/work";
    s.job.argv = argv;
    for (HostView& h : s.hosts) {
      h.facts.command = machine::read_command(request);
      for (const auto& [key, value] : environment) h.facts.software.environment[key] = value;
    }
    Codes found;
    for (const Finding& f : examine(s, {"CMD-", "DATA-"}).findings) found.insert(std::string(f.row->code));
    return found;
  }
  std::string root_;
};

TEST_F(FieldNotes, AMissingScriptIsCopiedBySync) {
  Situation s = docker_host_network();
  s.job.directory = "/home/train/work";
  s.job.argv = {"python", "train.py"};
  auto fix = [&](size_t from) {
    for (size_t h = 0; h < s.hosts.size(); ++h) {
      machine::CommandFile file;
      file.path = "/home/train/work/train.py";
      file.role = "script";
      file.named_by = "the command";
      file.exists = h < from;
      s.hosts[h].facts.command.files = {file};
    }
    for (const Finding& f : examine(s, {"CMD-SCRIPT-MISSING"}).findings) return f.fix;
    return std::string();
  };
  for (HostView& host : s.hosts) host.ranks = 1;
  EXPECT_TRUE(fix(0).starts_with("phalanx run -H " + s.hosts[0].name + ",")) << fix(0);
  EXPECT_TRUE(fix(0).ends_with(" --sync -- python train.py    # if train.py is here")) << fix(0);
  for (HostView& host : s.hosts) host.ranks = 2;  // the command starts as many as were asked for
  EXPECT_TRUE(fix(0).starts_with("phalanx run -H " + s.hosts[0].name + ":2,")) << fix(0);
  EXPECT_TRUE(fix(1).starts_with("ssh " + s.hosts[0].name + " scp -p /home/train/work/train.py ")) << fix(1);
  EXPECT_NE(fix(1).find("--sync"), std::string::npos) << fix(1);
}

TEST_F(FieldNotes, AMissingWorkingDirectoryIsCopiedBySync) {
  Situation s = docker_host_network();
  s.job.argv = {"python", "train.py"};
  machine::PathFact nowhere;
  nowhere.path = "/home/train/work";
  nowhere.role = "workdir";
  for (HostView& host : s.hosts) host.facts.storage.paths = {nowhere};
  auto found = examine(s, {"FS-WORKDIR-MISSING"});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_TRUE(found.findings[0].fix.ends_with(" --sync -- python train.py")) << found.findings[0].fix;
}

TEST_F(FieldNotes, LightningOverTwoContainers) {
  write(
      "run_ddp_train.sh",
      "#/bin/bash\n\nMASTER_ADDR='172.16.12.2' # ainode02 as master\n# MASTER_ADDR='172.16.12.8'\nMASTER_PORT='25678'\n\nGPUS=$1\nRANK=$2\n"
      "config_path=configs/config_gan_tiny_ddp.yaml\n\nCUDA_VISIBLE_DEVICES=$GPUS MASTER_ADDR=$MASTER_ADDR MASTER_PORT=$MASTER_PORT "
      "WORLD_SIZE=2 NODE_RANK=$RANK LOCAL_RANK=0 \\\npython3 cli.py fit -c $config_path >logs/nohup_logs/nohup.gan.ddp.log 2>&1\n");
  write("cli.py", "from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n");
  write("configs/config_gan_tiny_ddp.yaml",
        "trainer:\n  accelerator: gpu\n  strategy:\n    class_path: lightning.pytorch.strategies.ddp.DDPStrategy\n    init_args:\n"
        "      timeout: \"00:10:00\"\n      find_unused_parameters: true\n  devices: [0]\n  num_nodes: 2\n");
  Situation four = docker_host_network();
  EXPECT_EQ(codes(four, {"./run_ddp_train.sh", "0", "0"}),
            (Codes{"CMD-SHEBANG", "CMD-LOG-FOLDER", "CMD-LOG-SHARED", "CMD-LOCAL-RANK-FIXED", "CMD-WORLD-SIZE-FIXED",
                   "CMD-LIGHTNING-DEVICES", "CMD-LIGHTNING-DEVICE-LIST", "CMD-LIGHTNING-TIMEOUT"}));
  Situation one = four;  // as the note ran it: one GPU on each of two machines
  for (HostView& h : one.hosts) h.ranks = 1;
  one.job.world = 2;
  write("logs/nohup_logs/.keep", "");
  EXPECT_EQ(codes(one, {"bash", "run_ddp_train.sh", "0", "0"}), (Codes{"CMD-LIGHTNING-DEVICE-LIST", "CMD-LIGHTNING-TIMEOUT"}));
}

TEST_F(FieldNotes, ASpawningScriptOnOneMachine) {
  write("main.py",
        "import torch.multiprocessing as mp\nfrom torch.distributed import init_process_group\n\ndef train(rank, args):\n"
        "    init_process_group(backend='nccl', init_method='tcp://localhost:'+str(args.tcp_port), world_size=args.num_gpus, rank=rank)\n"
        "    netG = DistributedDataParallel(netG, device_ids=[rank], find_unused_parameters=True).to(device)\n"
        "    train_sampler = DistributedSampler(train_set) if args.num_gpus > 1 else RandomSampler(train_set)\n"
        "    train_loader = DataLoader(train_set, batch_size=args.batch_size, num_workers=3*args.num_gpus, sampler=train_sampler)\n"
        "    for epoch in range(args.epochs):\n        if args.num_gpus > 1:\n            train_sampler.set_epoch(epoch)\n"
        "        save_checkpoint(path, {'g': (netG.module if args.num_gpus > 1 else netG).state_dict()})\n\n"
        "if args.num_gpus > 1:\n    # random tcp port[54000, 54999] for multi-task in one machine\n"
        "    rnd_port = 54000 + random.randint(0, 888)\n    mp.spawn(train, nprocs=args.num_gpus, args=(args,))\n");
  EXPECT_EQ(codes(single_machine(), {"python", "main.py"}), (Codes{"CMD-SPAWN", "CMD-RANDOM-PORT", "CMD-HARD-CODED-PORT"}));
  Situation eight = docker_host_network();
  eight.hosts.resize(1);
  eight.hosts[0].facts.machine.cpus_usable = 16;
  eight.job.world = 4;
  EXPECT_TRUE(codes(eight, {"python", "main.py"}).count("DATA-WORKERS"));  // 3 × 4 in each of 4 ranks, 16 cores
  EXPECT_TRUE(codes(docker_host_network(), {"python", "main.py"}).count("CMD-INIT-LOCALHOST"));
}

TEST_F(FieldNotes, AccelerateWithDeepSpeedOverPdsh) {
  write(
      "acc.yaml",
      "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  deepspeed_hostfile: ./path/hostfile\n  deepspeed_multinode_launcher: pdsh\n"
      "  gradient_accumulation_steps: 1\n  gradient_clipping: 1.0\n  offload_optimizer_device: none\n  offload_param_device: none\n"
      "  zero3_init_flag: true\n  zero3_save_16bit_model: true\n  zero_stage: 3\ndistributed_type: DEEPSPEED\ndynamo_config: {}\n"
      "fsdp_config: {}\nmachine_rank: 0\nmain_process_ip: 10.1.0.11\nmain_process_port: 21011\nmain_training_function: main\n"
      "megatron_lm_config: {}\nmixed_precision: fp16\nnum_machines: 4\nnum_processes: 32\nrdzv_backend: static\nsame_network: true\n"
      "tpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\nuse_cpu: false\n");
  write("path/hostfile", "dgx01 slots=8\ndgx02 slots=8\ndgx03 slots=8\ndgx04 slots=8\n");
  write("train.py", "from accelerate import Accelerator\n");
  Situation s = bond_infiniband();
  for (HostView& h : s.hosts) h.ranks = 1;  // the launcher starts the others
  EXPECT_EQ(codes(s, {"accelerate", "launch", "--config_file", "acc.yaml", "train.py"}),
            (Codes{"CMD-PDSH", "CMD-DEEPSPEED-STAGE", "DATA-ZERO3-MERGE"}));
  ASSERT_EQ(std::system(("rm " + root_ + "/home/train/work/path/hostfile").c_str()), 0);
  EXPECT_TRUE(codes(s, {"accelerate", "launch", "--config_file", "acc.yaml", "train.py"}).count("CMD-FILE-MISSING"));
}

TEST_F(FieldNotes, LlamaFactoryOnTwoMachines) {
  write("config/train_config.yaml",
        "model_name_or_path: /models/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndeepspeed: ds_z2.json\ndataset: mine\n"
        "template: qwen\ncutoff_len: 2048\npreprocessing_num_works: 16\noutput_dir: saves/qwen\nper_device_train_batch_size: 1\n"
        "gradient_accumulation_steps: 2\nlearning_rate: 1.0e-5\nbf16: true\nddp_timeout: 180000000\n");
  write("ds_z2.json", "{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}, \"bf16\": {\"enabled\": \"auto\"}}");
  write("data/dataset_info.json", "{\"mine\": {\"file_name\": \"mine.json\"}}");
  Situation s = docker_host_network();
  for (HostView& h : s.hosts) {
    h.ranks = 1;
    h.facts.machine.cpus_usable = 256;
  }
  const std::vector<std::string> command = {"llamafactory-cli", "train", "config/train_config.yaml"};
  const std::map<std::string, std::string> meeting = {
      {"FORCE_TORCHRUN", "1"}, {"NNODES", "2"}, {"MASTER_ADDR", "192.168.20.14"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(codes(s, command, meeting), (Codes{"CMD-LLAMAFACTORY-KEY", "CMD-DEEPSPEED-STAGE", "DATA-BATCH", "DATA-PREPROCESS-WORKERS"}));
  EXPECT_TRUE(codes(s, command, {{"NNODES", "2"}}).count("CMD-LLAMAFACTORY-RENDEZVOUS"));
  for (HostView& h : s.hosts) h.ranks = 4;
  EXPECT_TRUE(codes(s, command, meeting).count("CMD-NESTED-LAUNCHER"));
}

TEST_F(FieldNotes, ThePlainWayIsLeftInPeace) {
  write("trainer_evaluate_demo.py", "from transformers import Trainer\ntrainer = Trainer(model=model, args=args)\ntrainer.train()\n");
  EXPECT_EQ(codes(single_machine(), {"python", "trainer_evaluate_demo.py", "--output_dir", "out"}), Codes{});
  EXPECT_EQ(codes(bond_infiniband(), {"python", "-u", "trainer_evaluate_demo.py"}), Codes{});
  EXPECT_EQ(codes(bond_infiniband(), {"hostname"}), Codes{});
}

}  // namespace
}  // namespace phalanx::doctor::test
