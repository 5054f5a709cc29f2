#include "cases.h"

namespace phalanx::doctor::test {
namespace {

using Change = std::function<void(machine::SoftwareFacts&)>;

// A change of the software of one host; of all.
auto on(size_t host, Change change) {
  return [host, change](Situation& s) { change(s.hosts[host].facts.software); };
}
auto everywhere(Change change) {
  return [change](Situation& s) {
    for (HostView& h : s.hosts) change(h.facts.software);
  };
}
auto package_on(size_t host, std::string name, std::string version) {
  return on(host, [name, version](machine::SoftwareFacts& f) { f.packages[name] = version; });
}
auto package_everywhere(std::string name, std::string version) {
  return everywhere([name, version](machine::SoftwareFacts& f) { f.packages[name] = version; });
}
auto variable_on(size_t host, std::string name, std::string value) {
  return on(host, [name, value](machine::SoftwareFacts& f) { f.environment[name] = value; });
}
auto variable_everywhere(std::string name, std::string value) {
  return everywhere([name, value](machine::SoftwareFacts& f) { f.environment[name] = value; });
}

void programs(std::vector<Case>& all) {
  auto base = plain_ethernet;
  auto torchrun = [](std::string error) {
    return [error](Situation& s) {
      s.job.argv = {"torchrun", "train.py"};
      for (HostView& h : s.hosts) h.facts.software.program = "/opt/conda/envs/llm/bin/torchrun";
      machine::SoftwareFacts& f = s.hosts[2].facts.software;
      f.program_error = error;
      f.bad_first_line = error.find("#!") != std::string::npos;
      if (!f.bad_first_line && !error.empty()) f.program.clear();
    };
  };
  all.push_back(
      hit("ENV-NO-PROGRAM", "not in PATH on one host", base, torchrun("'torchrun' was not found: no such program in PATH=/usr/bin:/bin")));
  all.push_back(miss("ENV-NO-PROGRAM", "there on all hosts", base, torchrun("")));
  all.push_back(miss("ENV-NO-PROGRAM", "no command was given", base, [](Situation& s) {
    s.job.argv.clear();
    s.hosts[0].facts.software.program_error = "the command is empty";
  }));
  all.push_back(hit("ENV-SHEBANG", "a copied environment", base,
                    torchrun("/opt/conda/envs/llm/bin/torchrun starts with '#!/home/a/llm/bin/python', which cannot be executed")));
  all.push_back(miss("ENV-SHEBANG", "a program that is missing", base, torchrun("'torchrun' was not found")));
  auto script = [](const char* name) {
    return on(
        1, [name](machine::SoftwareFacts& f) { f.shebangs = {{f.prefix + "/bin/" + name, "/home/a/llm/bin/python", "does not exist"}}; });
  };
  all.push_back(hit("ENV-MOVED", "another script of the environment", base, script("accelerate")));
  all.push_back(miss("ENV-MOVED", "the program itself has a finding of its own", base, [](Situation& s) {
    machine::SoftwareFacts& f = s.hosts[1].facts.software;
    f.program = f.prefix + "/bin/torchrun";
    f.program_error = f.program + " starts with '#!/home/a/llm/bin/python', which cannot be executed";
    f.bad_first_line = true;
    f.shebangs = {{f.program, "/home/a/llm/bin/python", "does not exist"}};
  }));
  all.push_back(hit("ENV-OTHER-PYTHON", "a copy that runs its original", base,
                    on(0, [](machine::SoftwareFacts& f) { f.program = "/data/llm/bin/torchrun"; })));
  all.push_back(miss("ENV-OTHER-PYTHON", "a link in /usr/local/bin", base,
                     on(0, [](machine::SoftwareFacts& f) { f.program = "/usr/local/bin/torchrun"; })));
  auto python = [](const char* version, bool assumed) {
    return on(3, [version, assumed](machine::SoftwareFacts& f) {
      f.python = version;
      f.assumed = assumed;
    });
  };
  all.push_back(hit("ENV-PYTHON-DIFFERS", "3.10 on one host", base, python("3.10.14", false)));
  all.push_back(miss("ENV-PYTHON-DIFFERS", "another patch release", base, python("3.11.2", false)));
  all.push_back(miss("ENV-PYTHON-DIFFERS", "a shell script may take another", base, python("3.10.14", true)));
  all.push_back(hit("ENV-PREFIX-DIFFERS", "base instead of llm", base, on(0, [](machine::SoftwareFacts& f) { f.prefix = "/opt/conda"; })));
  all.push_back(miss("ENV-PREFIX-DIFFERS", "the same", base, [](Situation&) {}));
  auto launch = [](const char* torch) {
    return [torch](Situation& s) {
      s.job.argv = {"python", "-m", "torch.distributed.launch", "train.py"};
      for (HostView& h : s.hosts) h.facts.software.packages["torch"] = torch;
    };
  };
  all.push_back(hit("ENV-LAUNCHER-OLD", "torch 2.4", base, launch("2.4.0")));
  all.push_back(miss("ENV-LAUNCHER-OLD", "torch 1.13", base, launch("1.13.1")));
}

void packages(std::vector<Case>& all) {
  auto base = plain_ethernet;
  all.push_back(hit("ENV-TORCH-DIFFERS", "one host upgraded", base, package_on(1, "torch", "2.5.1")));
  all.push_back(
      hit("ENV-TORCH-DIFFERS", "another CUDA", docker_host_network, on(1, [](machine::SoftwareFacts& f) { f.torch_cuda = "11.8"; })));
  all.push_back(miss("ENV-TORCH-DIFFERS", "a shell script may take another", base, on(1, [](machine::SoftwareFacts& f) {
                       f.packages["torch"] = "2.5.1";
                       f.assumed = true;
                     })));
  all.push_back(hit("ENV-PACKAGE-DIFFERS", "transformers", base, package_on(1, "transformers", "4.46.0")));
  all.push_back(miss("ENV-PACKAGE-DIFFERS", "a package of no weight", base, [](Situation& s) {
    package_everywhere("rich", "13.7.0")(s);
    package_on(1, "rich", "13.8.0")(s);
  }));
  all.push_back(hit("ENV-PACKAGES-OTHER", "rich", base, [](Situation& s) {
    package_everywhere("rich", "13.7.0")(s);
    package_on(1, "rich", "13.8.0")(s);
  }));
  all.push_back(miss("ENV-PACKAGES-OTHER", "only on one host", base, package_on(1, "rich", "13.8.0")));
  auto without = [](std::string name, std::vector<std::string> argv, std::string program) {
    return [name, argv, program](Situation& s) {
      s.job.argv = argv;
      for (HostView& h : s.hosts) h.facts.software.program = program;
      s.hosts[2].facts.software.packages.erase(name);
    };
  };
  all.push_back(hit("ENV-PACKAGE-MISSING", "torchrun without torch", base,
                    without("torch", {"torchrun", "x.py"}, "/opt/conda/envs/llm/bin/torchrun")));
  all.push_back(hit("ENV-PACKAGE-MISSING", "as a module", base,
                    without("accelerate", {"python", "-m", "accelerate.commands.launch", "x.py"}, "/opt/conda/envs/llm/bin/python")));
  all.push_back(miss("ENV-PACKAGE-MISSING", "a package that the launcher does not need", base,
                     without("numpy", {"torchrun", "x.py"}, "/opt/conda/envs/llm/bin/torchrun")));
  all.push_back(hit("ENV-PACKAGE-ABSENT", "numpy", base, without("numpy", {"torchrun", "x.py"}, "/opt/conda/envs/llm/bin/torchrun")));
  all.push_back(miss("ENV-PACKAGE-ABSENT", "only one host has it", base, package_on(1, "deepspeed", "0.15.0")));
  auto editable = [](bool exists) {
    return on(1, [exists](machine::SoftwareFacts& f) { f.editables = {{"llamafactory", "/home/train/LLaMA-Factory", exists}}; });
  };
  all.push_back(hit("ENV-EDITABLE-GONE", "the folder was not copied", base, editable(false)));
  all.push_back(miss("ENV-EDITABLE-GONE", "the folder is there", base, editable(true)));
  auto hidden = [](const char* folder) {
    return on(0, [folder](machine::SoftwareFacts& f) {
      f.user_site = "/home/train/.local/lib/python3.11/site-packages";
      f.hidden = {{"transformers", "4.30.0", folder, "4.44.2", f.site_packages[0]}};
    });
  };
  all.push_back(hit("ENV-USER-SITE", "an old transformers", base, hidden("/home/train/.local/lib/python3.11/site-packages")));
  all.push_back(miss("ENV-USER-SITE", "PYTHONPATH is on purpose", base, hidden("/home/train/src")));
  all.push_back(
      hit("ENV-CPU-TORCH", "a CPU build among GPUs", docker_host_network, on(0, [](machine::SoftwareFacts& f) { f.torch_cuda = "cpu"; })));
  all.push_back(miss("ENV-CPU-TORCH", "no GPUs", base, [](Situation& s) { s.job.wants_gpus = true; }));
  all.push_back(hit("ENV-LIGHTNING-OLD", "2.1", base, package_everywhere("lightning", "2.1.0")));
  all.push_back(miss("ENV-LIGHTNING-OLD", "2.2.1", base, package_everywhere("lightning", "2.2.1")));
}

void libraries(std::vector<Case>& all) {
  auto base = plain_ethernet;
  auto glibc = [](const char* needed) {
    return on(1, [needed](machine::SoftwareFacts& f) {
      f.glibc_needed = needed;
      f.glibc_needed_by = f.site_packages[0] + "/torch/lib/libtorch_cpu.so";
    });
  };
  all.push_back(hit("ENV-GLIBC", "made on a newer distribution", base, glibc("2.38")));
  all.push_back(miss("ENV-GLIBC", "just what the host has", base, glibc("2.36")));
  auto cuda = [](const char* path, const char* version) {
    return on(0, [path, version](machine::SoftwareFacts& f) { f.cuda_libraries = {{path, version}}; });
  };
  auto gpus = docker_host_network;
  all.push_back(hit("ENV-CUDA-MIX", "CUDA 12.0 before 12.1", gpus, cuda("/usr/local/cuda/lib64/libnvJitLink.so.12", "12.0.140")));
  all.push_back(miss("ENV-CUDA-MIX", "a newer one", gpus, cuda("/usr/local/cuda/lib64/libnvJitLink.so.12", "12.4.127")));
  all.push_back(hit("ENV-CUDA-OTHER", "CUDA 11 beside 12", gpus, cuda("/usr/local/cuda/lib64/libcudart.so.11.0", "11.8.89")));
  all.push_back(miss("ENV-CUDA-OTHER", "the same major version", gpus, cuda("/usr/local/cuda/lib64/libcudart.so.12", "12.4.127")));
  all.push_back(hit("ENV-EXT-LOCK", "a crashed build", base, on(2, [](machine::SoftwareFacts& f) {
                      f.stale_locks = {"/home/train/.cache/torch_extensions/py311_cu121/fused_adam/lock"};
                    })));
  all.push_back(miss("ENV-EXT-LOCK", "none", base, [](Situation&) {}));
  auto kernel = [](const char* release) { return [release](Situation& s) { s.hosts[0].facts.machine.kernel = release; }; };
  all.push_back(hit("ENV-KERNEL-OLD", "5.4", base, kernel("5.4.0-190-generic")));
  all.push_back(miss("ENV-KERNEL-OLD", "5.15", base, kernel("5.15.0-91-generic")));
}

void variables(std::vector<Case>& all) {
  auto base = plain_ethernet;
  all.push_back(hit("ENV-MISSPELLED", "the user's own", base, [](Situation& s) { s.job.set.emplace_back("CUDA_VISIBLE_DEVICE", "0"); }));
  all.push_back(hit("ENV-MISSPELLED", "in a profile", base, variable_on(0, "GLOO_SOCKET_IFNAM", "eno1")));
  all.push_back(miss("ENV-MISSPELLED", "the right names", base, [](Situation& s) {
    variable_everywhere("CUDA_VERSION", "12.1.1")(s);
    variable_everywhere("WANDB_NAME", "run1")(s);
    variable_everywhere("GLOO_SOCKET_IFNAME", "eno1")(s);
  }));
  all.push_back(hit("ENV-VARIABLES-DIFFER", "set on one host", base, variable_on(3, "TORCH_NCCL_ENABLE_MONITORING", "0")));
  all.push_back(miss("ENV-VARIABLES-DIFFER", "interfaces and folders may differ", base, [](Situation& s) {
    variable_on(3, "GLOO_SOCKET_IFNAME", "eno2")(s);
    variable_on(2, "CUDA_HOME", "/usr/local/cuda-12.1")(s);
  }));
  all.push_back(hit("ENV-OFFLINE", "on one host", base, variable_on(1, "HF_HUB_OFFLINE", "1")));
  all.push_back(miss("ENV-OFFLINE", "on all", base, variable_everywhere("HF_HUB_OFFLINE", "1")));
  all.push_back(hit("ENV-WANDB", "no key", base, package_everywhere("wandb", "0.17.0")));
  all.push_back(miss("ENV-WANDB", "offline", base, [](Situation& s) {
    package_everywhere("wandb", "0.17.0")(s);
    variable_everywhere("WANDB_MODE", "offline")(s);
  }));
  all.push_back(hit("ENV-TOKENIZERS", "not set", base, package_everywhere("tokenizers", "0.19.1")));
  all.push_back(miss("ENV-TOKENIZERS", "set", base, [](Situation& s) {
    package_everywhere("tokenizers", "0.19.1")(s);
    variable_everywhere("TOKENIZERS_PARALLELISM", "false")(s);
  }));
  all.push_back(hit("ENV-PROXY", "a proxy for everything", base, variable_everywhere("http_proxy", "http://proxy:3128")));
  all.push_back(miss("ENV-PROXY", "the net is excepted", base, [](Situation& s) {
    variable_everywhere("http_proxy", "http://proxy:3128")(s);
    variable_everywhere("no_proxy", "localhost,192.168.20.0/24")(s);
  }));
  all.push_back(hit("ENV-UNSET", "one of the project file", base, [](Situation& s) { s.job.unset = {"phalanx.yaml:7:3: API_KEY"}; }));
  all.push_back(miss("ENV-UNSET", "all have values", base, [](Situation& s) { s.job.unset.clear(); }));
  all.push_back(hit("ENV-OMP", "64 threads for each of two ranks", base, variable_everywhere("OMP_NUM_THREADS", "64")));
  all.push_back(miss("ENV-OMP", "just the cores", base, variable_everywhere("OMP_NUM_THREADS", "32")));
  auto rank = [](bool both) {
    return [both](Situation& s) {
      variable_everywhere("LOCAL_RANK", "0")(s);
      if (both) variable_everywhere("RANK", "0")(s);
    };
  };
  all.push_back(hit("ENV-HAND-RANK", "for two ranks", base, rank(true)));
  all.push_back(miss("ENV-HAND-RANK", "one rank for each host", base, [rank](Situation& s) {
    rank(true)(s);
    for (HostView& h : s.hosts) h.ranks = 1;
  }));
}

}  // namespace

std::vector<Case> software_cases() {
  std::vector<Case> all;
  for (auto* part : {programs, packages, libraries, variables}) part(all);
  return all;
}

}  // namespace phalanx::doctor::test
