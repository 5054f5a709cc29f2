// Scripts, launch lines and the files of a command. Configurations and Python stand in command_config_cases.cc.
#include "cases.h"
#include "user_files.h"

namespace phalanx::doctor::test {
namespace {

using machine::LaunchLine;

void output(Situation& s, bool folder, bool made) {
  machine::ShellOutput o;
  o.file = "/home/train/work/run.sh";
  o.line = 8;
  o.target = "/home/train/work/logs/nohup_logs/gan.log";
  o.folder = "/home/train/work/logs/nohup_logs";
  o.folder_exists = folder;
  o.folder_made = made;
  o.launch = true;
  for (HostView& h : s.hosts) h.facts.command.outputs.push_back(o);
}

// ./run.sh of the Lightning field note, started by its own name.
void run_script(Situation& s, const std::string& text) {
  give(s, "run.sh", "shell", text);
  give(s, launch_line("direct", "./run.sh"));
}

std::vector<Case> shell_cases() {
  return {
      hit("CMD-SHEBANG", "#/bin/bash", docker_host_network, [](Situation& s) { run_script(s, "#/bin/bash\npython3 cli.py fit\n"); }),
      miss("CMD-SHEBANG", "started as bash run.sh", docker_host_network,
           [](Situation& s) {
             give(s, "run.sh", "shell", "#/bin/bash\npython3 cli.py fit\n");
             give(s, launch_line("shell", "run.sh"));
           }),
      miss("CMD-SHEBANG", "#! /bin/sh with a blank", docker_host_network,
           [](Situation& s) { run_script(s, "#! /bin/sh\npython3 cli.py fit\n"); }),
      hit("CMD-CRLF", "saved on Windows", docker_host_network,
          [](Situation& s) { run_script(s, "#!/bin/bash\r\npython3 cli.py fit\r\n"); }),
      miss("CMD-CRLF", "LF", docker_host_network, [](Situation& s) { run_script(s, "#!/bin/bash\npython3 cli.py fit\n"); }),
      hit("CMD-LOG-FOLDER", "logs/nohup_logs is missing", docker_host_network, [](Situation& s) { output(s, false, false); }),
      miss("CMD-LOG-FOLDER", "the script makes it", docker_host_network, [](Situation& s) { output(s, false, true); }),
      miss("CMD-LOG-FOLDER", "it is there", docker_host_network, [](Situation& s) { output(s, true, false); }),
      hit("CMD-LOG-SHARED", "4 ranks, one log", docker_host_network, [](Situation& s) { output(s, true, false); }),
      miss("CMD-LOG-SHARED", "one rank per host", docker_host_network,
           [](Situation& s) {
             output(s, true, false);
             for (HostView& h : s.hosts) h.ranks = 1;
           }),
      hit("CMD-BACKGROUND", "python … & at the end", docker_host_network,
          [](Situation& s) {
            run_script(s, "#!/bin/bash\nnohup python train.py &\n");
            LaunchLine l = in_script(launch_line("python", "train.py"), {});
            l.background = true;
            give(s, l);
          }),
      miss("CMD-BACKGROUND", "the script waits", docker_host_network,
           [](Situation& s) {
             run_script(s, "#!/bin/bash\npython train.py &\nwait $!\n");
             LaunchLine l = in_script(launch_line("python", "train.py"), {});
             l.background = true;
             give(s, l);
           }),
      hit("CMD-LOCAL-RANK-FIXED", "LOCAL_RANK=0 with 4 ranks a host", docker_host_network,
          [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"LOCAL_RANK", "0"}})); }),
      miss("CMD-LOCAL-RANK-FIXED", "LOCAL_RANK=0 with one rank a host, as in the field note", docker_host_network,
           [](Situation& s) {
             give(s, in_script(launch_line("python", "cli.py"), {{"LOCAL_RANK", "0"}}));
             for (HostView& h : s.hosts) h.ranks = 1;
             s.job.world = 2;
           }),
      hit("CMD-RANK-FIXED", "export RANK=0", docker_host_network,
          [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"RANK", "0"}})); }),
      miss("CMD-RANK-FIXED", "RANK=$2, not known before", docker_host_network,
           [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"RANK", "$2"}})); }),
      hit("CMD-WORLD-SIZE-FIXED", "WORLD_SIZE=2 of 8 ranks", docker_host_network,
          [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"WORLD_SIZE", "2"}})); }),
      miss("CMD-WORLD-SIZE-FIXED", "WORLD_SIZE=8 of 8 ranks", docker_host_network,
           [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"WORLD_SIZE", "8"}})); }),
      hit("CMD-MASTER-FIXED", "MASTER_ADDR is another machine", docker_host_network,
          [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"MASTER_ADDR", "172.16.12.3"}})); }),
      miss("CMD-MASTER-FIXED", "MASTER_ADDR is the first host", docker_host_network,
           [](Situation& s) { give(s, in_script(launch_line("python", "cli.py"), {{"MASTER_ADDR", "172.16.12.2"}})); }),
  };
}

void llamafactory(Situation& s, const std::map<std::string, std::string>& variables) {
  LaunchLine l = launch_line("llamafactory", "config/train_config.yaml");
  l.variables = variables;
  give(s, l);
  for (HostView& h : s.hosts) h.ranks = 1;
}
const std::map<std::string, std::string> kMeeting = {{"NNODES", "2"}, {"MASTER_ADDR", "192.168.20.14"}, {"MASTER_PORT", "29500"}};

void one_gpu_each(Situation& s) {
  for (HostView& h : s.hosts) h.facts.gpus.devices.resize(1);
}

std::vector<Case> launch_cases() {
  return {
      hit("CMD-NESTED-LAUNCHER", "torchrun under four ranks a host", docker_host_network,
          [](Situation& s) { give(s, launch_line("torchrun", "train.py")); }),
      hit("CMD-NESTED-LAUNCHER", "llamafactory-cli sees four GPUs", docker_host_network,
          [](Situation& s) { give(s, launch_line("llamafactory", "train.yaml")); }),
      miss("CMD-NESTED-LAUNCHER", "one rank a host for the launcher", docker_host_network,
           [](Situation& s) {
             give(s, launch_line("torchrun", "train.py"));
             for (HostView& h : s.hosts) h.ranks = 1;
           }),
      miss("CMD-NESTED-LAUNCHER", "plain python", docker_host_network, [](Situation& s) { give(s, launch_line("python", "train.py")); }),
      hit("CMD-SPAWN", "mp.spawn(train, nprocs=args.num_gpus)", docker_host_network,
          [](Situation& s) {
            give(s, "main.py", "script", "import torch.multiprocessing as mp\nmp.spawn(train, nprocs=args.num_gpus)\n");
          }),
      miss("CMD-SPAWN", "in a comment", docker_host_network,
           [](Situation& s) { give(s, "main.py", "script", "# mp.spawn(train, nprocs=4)\ntrain()\n"); }),
      miss("CMD-SPAWN", "reads LOCAL_RANK where a launcher gives it", docker_host_network,
           [](Situation& s) { give(s, "main.py", "script", "rank = int(os.environ['LOCAL_RANK'])\nmp.spawn(train, nprocs=4)\n"); }),
      hit("CMD-FORCE-TORCHRUN", "two hosts with one GPU each", docker_host_network,
          [](Situation& s) {
            one_gpu_each(s);
            llamafactory(s, kMeeting);
          }),
      miss("CMD-FORCE-TORCHRUN", "FORCE_TORCHRUN=1", docker_host_network,
           [](Situation& s) {
             one_gpu_each(s);
             auto variables = kMeeting;
             variables["FORCE_TORCHRUN"] = "1";
             llamafactory(s, variables);
           }),
      miss("CMD-FORCE-TORCHRUN", "four GPUs: torchrun starts by itself", docker_host_network,
           [](Situation& s) { llamafactory(s, kMeeting); }),
      hit("CMD-NPROC-UNSET", "CUDA_VISIBLE_DEVICES on one host only", docker_host_network,
          [](Situation& s) {
            llamafactory(s, kMeeting);
            s.hosts[1].facts.software.environment["CUDA_VISIBLE_DEVICES"] = "0,1";
          }),
      miss("CMD-NPROC-UNSET", "NPROC_PER_NODE says it", docker_host_network,
           [](Situation& s) {
             auto variables = kMeeting;
             variables["NPROC_PER_NODE"] = "2";
             llamafactory(s, variables);
             s.hosts[1].facts.software.environment["CUDA_VISIBLE_DEVICES"] = "0,1";
           }),
      hit("CMD-LLAMAFACTORY-RENDEZVOUS", "no MASTER_PORT", docker_host_network,
          [](Situation& s) { llamafactory(s, {{"NNODES", "2"}, {"MASTER_ADDR", "192.168.20.14"}}); }),
      miss("CMD-LLAMAFACTORY-RENDEZVOUS", "both set, as in the field note", docker_host_network,
           [](Situation& s) { llamafactory(s, kMeeting); }),
      hit("CMD-NODE-RANK-FIXED", "--machine_rank 0 everywhere", docker_host_network,
          [](Situation& s) {
            LaunchLine l = launch_line("accelerate", "demo.py");
            l.options = {{"num_machines", "2"}, {"machine_rank", "0"}};
            give(s, l);
          }),
      miss("CMD-NODE-RANK-FIXED", "--machine_rank ${RANK}", docker_host_network,
           [](Situation& s) {
             LaunchLine l = launch_line("accelerate", "demo.py");
             l.options = {{"num_machines", "2"}, {"machine_rank", "${RANK}"}};
             give(s, l);
           }),
  };
}

std::vector<Case> torch_launch_cases() {
  return {
      hit("CMD-TORCH-LAUNCH", "argparse knows --local_rank only", docker_host_network,
          [](Situation& s) {
            give(s, launch_line("torch.distributed.launch", "main.py"));
            give(s, "main.py", "script", "parser.add_argument('--local_rank', type=int)\n");
          }),
      miss("CMD-TORCH-LAUNCH", "knows both", docker_host_network,
           [](Situation& s) {
             give(s, launch_line("torch.distributed.launch", "main.py"));
             give(s, "main.py", "script", "parser.add_argument('--local-rank', '--local_rank', type=int)\n");
           }),
  };
}

void lose(Situation& s, size_t host, const std::string& name) {
  machine::CommandFile& f = file_on(s, host, name);
  f.exists = false;
  f.text = f.sha256 = "";
}

std::vector<Case> file_cases() {
  return {
      hit("CMD-SCRIPT-MISSING", "on the fourth host", bond_infiniband,
          [](Situation& s) {
            give(s, "train.py", "script", "import torch\n");
            lose(s, 3, "train.py");
          }),
      miss("CMD-SCRIPT-MISSING", "only a configuration is missing", bond_infiniband,
           [](Situation& s) {
             give(s, "train.py", "script", "import torch\n");
             give(s, "ds.json", "deepspeed", "{}");
             lose(s, 3, "ds.json");
           }),
      hit("CMD-FILE-MISSING", "the host file of accelerate", bond_infiniband,
          [](Situation& s) {
            give(s, "path/hostfile", "hostfile", "a slots=8\n");
            for (size_t h = 0; h < s.hosts.size(); ++h) {
              lose(s, h, "hostfile");
              file_on(s, h, "hostfile").named_by = "deepspeed_hostfile in acc.yaml";
            }
          }),
      miss("CMD-FILE-MISSING", "it is there", bond_infiniband, [](Situation& s) { give(s, "path/hostfile", "hostfile", "a slots=8\n"); }),
      hit("CMD-FILE-DIFFERS", "an older train.py on one host", bond_infiniband,
          [](Situation& s) {
            give(s, "train.py", "script", "import torch\n");
            file_on(s, 2, "train.py") = user_file("train.py", "script", "import torch  # old\n");
          }),
      miss("CMD-FILE-DIFFERS", "other paths", bond_infiniband,
           [](Situation& s) {
             give(s, "train.py", "script", "import torch\n");
             s.hosts[2].facts.command.files.push_back(user_file("other.yaml", "config", "a: 1\n"));
           }),
      hit("CMD-GIT-DIFFERS", "one host is behind", bond_infiniband,
          [](Situation& s) {
            for (HostView& h : s.hosts) h.facts.command.git_head = std::string(40, 'a');
            s.hosts[1].facts.command.git_head = std::string(40, 'b');
          }),
      miss("CMD-GIT-DIFFERS", "one host has no repository", bond_infiniband,
           [](Situation& s) {
             for (HostView& h : s.hosts) h.facts.command.git_head = std::string(40, 'a');
             s.hosts[1].facts.command.git_head = "";
           }),
      hit("CMD-CONFIG-SYNTAX", "a comma too many", bond_infiniband,
          [](Situation& s) { give(s, "ds.json", "deepspeed", "{\"zero_optimization\": {\"stage\": 2},}"); }),
      miss("CMD-CONFIG-SYNTAX", "well formed", bond_infiniband,
           [](Situation& s) { give(s, "train.yaml", "llamafactory", "stage: sft\ntemplate: qwen\n"); }),
      hit("CMD-CONFIG-DUPLICATE", "learning_rate twice", bond_infiniband,
          [](Situation& s) { give(s, "train.yaml", "llamafactory", "learning_rate: 1.0e-4\nstage: sft\nlearning_rate: 1.0e-5\n"); }),
      miss("CMD-CONFIG-DUPLICATE", "once in each of two sections", bond_infiniband,
           [](Situation& s) { give(s, "cli.yaml", "lightning", "trainer: {lr: 1}\nmodel: {lr: 2}\n"); }),
  };
}

}  // namespace

std::vector<Case> command_cases() {
  std::vector<Case> all;
  for (auto* part : {shell_cases, launch_cases, torch_launch_cases, file_cases, command_config_cases, command_python_cases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
