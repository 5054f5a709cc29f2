#include "diagnosis/logs/family.h"

#include <array>
#include <span>

namespace phalanx::diagnosis {
namespace {

using words::Text;

struct Family {
  std::string_view prefix;  // of the path; the first that fits counts
  Text name;
};

// Of NCCL's sources (github.com/NVIDIA/nccl, src/), and of plugins that log through it.
constexpr std::array kNcclParts = {
    Family{"transport/net_ib", Text{"NCCL's InfiniBand transport"}},
    Family{"misc/ibv", Text{"NCCL's InfiniBand transport"}},
    Family{"transport/net_socket", Text{"NCCL's TCP transport"}},
    Family{"misc/socket", Text{"NCCL's TCP connections"}},
    Family{"transport/shm", Text{"NCCL's shared memory"}},
    Family{"misc/shm", Text{"NCCL's shared memory"}},
    Family{"transport/p2p", Text{"NCCL's access between GPUs"}},
    Family{"transport/nvls", Text{"NCCL's NVLink SHARP"}},
    Family{"transport/coll_net", Text{"NCCL's in-network reduction"}},
    Family{"bootstrap", Text{"NCCL's start"}},
    Family{"init", Text{"NCCL's start"}},
    Family{"group", Text{"NCCL's start"}},
    Family{"graph/", Text{"NCCL's topology detection"}},
    Family{"misc/nvml", Text{"NCCL's queries of the GPU driver"}},
    Family{"misc/cuda", Text{"NCCL's calls of CUDA"}},
    Family{"include/alloc", Text{"NCCL's calls of CUDA"}},
    Family{"enqueue", Text{"NCCL's launch of collectives"}},
    Family{"proxy", Text{"NCCL's proxy thread"}},
    Family{"plugin/", Text{"NCCL's plugins"}},
    Family{"nccl_ofi", Text{"the plugin aws-ofi-nccl"}},
    Family{"ras/", Text{"NCCL's RAS"}},
    Family{"misc/param", Text{"NCCL's settings"}},
    Family{"misc/argcheck", Text{"a program's call of NCCL"}},
    Family{"gin/", Text{"NCCL's GPU-initiated networking"}},
    Family{"rma/", Text{"NCCL's one-sided operations"}},
    Family{"", Text{"NCCL"}},
};

// Of torch/csrc/distributed/c10d, as glog-like prefixes name them.
constexpr std::array kC10d = {
    Family{"socket.cpp", Text{"PyTorch's rendezvous connections"}},
    Family{"TCPStore", Text{"PyTorch's store"}},
    Family{"PrefixStore", Text{"PyTorch's store"}},
    Family{"FileStore", Text{"PyTorch's store"}},
    Family{"ProcessGroupNCCL", Text{"PyTorch's NCCL process group"}},
    Family{"NCCLUtils", Text{"PyTorch's NCCL process group"}},
    Family{"ProcessGroupGloo", Text{"PyTorch's Gloo process group"}},
    Family{"reducer.cpp", Text{"PyTorch's DDP"}},
    Family{"logger.cpp", Text{"PyTorch's DDP"}},
    Family{"CUDACachingAllocator", Text{"PyTorch's GPU memory"}},
};

// Of the catalogue, where the file tells no nearer part.
constexpr std::array kSources = {
    Family{"torch", Text{"PyTorch's distributed package"}},
    Family{"gloo", Text{"Gloo"}},
    Family{"ofi", Text{"the plugin aws-ofi-nccl"}},
    Family{"lightning", Text{"Lightning"}},
    Family{"megatron", Text{"Megatron"}},
    Family{"accelerate", Text{"accelerate"}},
    Family{"deepspeed", Text{"DeepSpeed"}},
    Family{"llamafactory", Text{"LLaMA-Factory"}},
};

// Of installed packages.
constexpr std::array kModules = {
    Family{"torch/distributed/elastic", Text{"torchrun"}},
    Family{"torch/distributed/fsdp", Text{"PyTorch's FSDP"}},
    Family{"torch/distributed/checkpoint", Text{"PyTorch's distributed checkpoints"}},
    Family{"torch/distributed/rendezvous", Text{"PyTorch's rendezvous"}},
    Family{"torch/distributed/", Text{"PyTorch's distributed package"}},
    Family{"torch/nn/parallel", Text{"PyTorch's DDP"}},
    Family{"torch/utils/data", Text{"PyTorch's data loading"}},
    Family{"torch/utils/cpp_extension", Text{"the build of an extension"}},
    Family{"torch/serialization", Text{"PyTorch's loading and saving of files"}},
    Family{"torch/cuda", Text{"PyTorch's CUDA"}},
    Family{"torch/optim", Text{"PyTorch's optimizers"}},
    Family{"torch/amp", Text{"PyTorch's mixed precision"}},
    Family{"torch/_dynamo", Text{"PyTorch's compiler"}},
    Family{"torch/_inductor", Text{"PyTorch's compiler"}},
    Family{"triton/", Text{"PyTorch's compiler"}},
    Family{"deepspeed/ops/op_builder", Text{"the build of an extension"}},
    Family{"deepspeed/launcher", Text{"DeepSpeed's launcher"}},
    Family{"deepspeed/runtime/zero", Text{"DeepSpeed's ZeRO"}},
    Family{"deepspeed/runtime/config", Text{"DeepSpeed's configuration"}},
    Family{"deepspeed/", Text{"DeepSpeed"}},
    Family{"accelerate/", Text{"accelerate"}},
    Family{"transformers/", Text{"transformers"}},
    Family{"datasets/", Text{"datasets"}},
    Family{"huggingface_hub/", Text{"the access to the Hugging Face Hub"}},
    Family{"safetensors/", Text{"the reading of safetensors files"}},
    Family{"peft/", Text{"peft"}},
    Family{"trl/", Text{"trl"}},
    Family{"llamafactory/", Text{"LLaMA-Factory"}},
    Family{"lightning", Text{"Lightning"}},
    Family{"pytorch_lightning/", Text{"Lightning"}},
    Family{"megatron/", Text{"Megatron"}},
    Family{"flash_attn/", Text{"flash-attention"}},
    Family{"bitsandbytes/", Text{"bitsandbytes"}},
    Family{"vllm/", Text{"vLLM"}},
    Family{"ray/", Text{"Ray"}},
    Family{"wandb/", Text{"wandb"}},
    Family{"torch/", Text{"PyTorch"}},
};

doctor::Words in_both(const Text& text) { return {std::string(text.english), std::string(text.in(base::Language::kChinese))}; }

doctor::Words first_of(std::span<const Family> families, std::string_view path) {
  for (const Family& family : families)
    if (path.starts_with(family.prefix)) return in_both(family.name);
  return {};
}

// The last word before `end` that names a file and a line.
std::string_view file_before(std::string_view line, size_t end) {
  std::string_view head = line.substr(0, end);
  while (head.ends_with(' ')) head.remove_suffix(1);
  size_t space = head.rfind(' ');
  std::string_view word = space == head.npos ? head : head.substr(space + 1);
  return word.find(':') == word.npos ? std::string_view() : word;
}

}  // namespace

doctor::Words family_of_line(std::string_view line) {
  constexpr size_t kMostHead = 200;
  std::string_view head = line.substr(0, kMostHead);
  if (size_t warn = head.find(" NCCL WARN "); warn != head.npos) {
    std::string_view path = file_before(line, warn);
    if (line.substr(warn).starts_with(" NCCL WARN NET/OFI")) path = "nccl_ofi";
    else if (line.substr(warn).starts_with(" NCCL WARN NET/IB")) path = "transport/net_ib";
    if (path.starts_with("src/")) path.remove_prefix(4);
    return first_of(kNcclParts, path);
  }
  for (const Family& family : kC10d)
    if (size_t at = head.find(family.prefix); at != head.npos && at > 0 && (head[at - 1] == ' ' || head[at - 1] == '/'))
      return in_both(family.name);
  return {};
}

doctor::Words family_of_module(std::string_view path) { return first_of(kModules, path); }

doctor::Words family_of_message(const codes::KnownMessage& message) {
  const std::string_view file = message.file.substr(message.file.rfind('/') + 1);
  doctor::Words part = message.source == "nccl" ? first_of(kNcclParts, message.file) : first_of(kModules, message.file);
  if (part.empty() && message.source == "torch") part = first_of(kC10d, file);
  return part.empty() ? first_of(kSources, message.source) : part;
}

}  // namespace phalanx::diagnosis
