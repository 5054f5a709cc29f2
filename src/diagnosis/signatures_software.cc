// Python, packages, libraries, the hub.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kSoftwareSignatures[] = {
    {"ENV-EDITABLE-GONE", Role::kRoot, "No module named 'llamafactory'", "ModuleNotFoundError: No module named 'llamafactory'",
     "ModuleNotFoundError: No module named 'llamafactory'", "No module named 'llama'"},
    {"ENV-IMPORT", Role::kRoot, "ModuleNotFoundError: ", R"(ModuleNotFoundError: No module named '(?P<module>[\w.]+)')",
     "ModuleNotFoundError: No module named 'deepspeed'", "except ModuleNotFoundError: pass"},
    {"ENV-IMPORT", Role::kRoot, "cannot import name", R"(ImportError: cannot import name '(?P<name>\w+)' from)",
     "ImportError: cannot import name 'AdamW' from 'transformers' (/opt/env/lib/python3.10/site-packages/transformers/"
     "__init__.py)",
     "cannot import name tags"},
    {"ENV-IMPORT", Role::kRoot, "No module named ", R"(^(\S*/)?python[\d.]*: No module named (?P<module>\S+))",
     "/usr/bin/python3: No module named torch", "pip: No module named x"},
    {"ENV-PACKAGE-VERSION", Role::kRoot, "is required for a normal functioning of this module",
     R"(ImportError: \S+ is required for a normal functioning of this module)",
     "ImportError: tokenizers>=0.21,<0.22 is required for a normal functioning of this module, but found "
     "tokenizers==0.19.1.",
     "patience is required for a normal functioning of this module"},
    {"ENV-LIGHTNING-OLD", Role::kRoot, "unexpected keyword argument", "got an unexpected keyword argument 'strict_loading'",
     "TypeError: LightningModule.load_state_dict() got an unexpected keyword argument 'strict_loading'",
     "got an unexpected keyword argument 'foo'"},
    {"ENV-PACKAGE-VERSION", Role::kRoot, "unexpected keyword argument", R"(TypeError: .*got an unexpected keyword argument .(?P<name>\w+))",
     "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'", "got an unexpected keyword argument in the debate"},
    {"ENV-PACKAGE-VERSION", Role::kRoot, "has no attribute",
     R"(AttributeError: module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)')",
     "AttributeError: module 'torch.library' has no attribute 'register_fake'", "AttributeError: 'NoneType' object has no attribute 'x'"},
    {"ENV-PACKAGE-VERSION", Role::kRoot, "compiled using NumPy 1.x cannot be run",
     R"(A module that was compiled using NumPy 1\.x cannot be run in)",
     "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.1 as it may crash.", "NumPy 1.x cannot be run"},
    {"ENV-GLIBC", Role::kRoot, "' not found (required by", R"(version .(GLIBC|GLIBCXX|CXXABI)_[\d.]+. not found \(required by)",
     "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by "
     "/opt/env/lib/libfoo.so)",
     "'x' not found (required by nobody)"},
    {"ENV-CUDA-MIX", Role::kRoot,
     "undefined symbol: ", R"(undefined symbol: (__nvJitLink|cublas|cudnn|cusparse|_ZN5torch|_ZN2at|_ZN3c10|_ZNK3c10)\w*)",
     "ImportError: /opt/env/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: "
     "undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12",
     "undefined symbol: ncclCommRegister"},
    {"ENV-CUDA-MIX", Role::kRoot, "cannot open shared object file",
     R"(lib(cudart|cublas|cublasLt|cudnn|cusparse|nvrtc|cufft|curand|cusolver|nvJitLink)[\w.-]*: cannot open shared )"
     "object file",
     "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
     "libnccl-net.so: cannot open shared object file"},
    {"ENV-LIBRARY-MISSING", Role::kRoot, "cannot open shared object file",
     R"((ImportError|OSError|error while loading shared libraries): (?P<library>lib[\w.+-]+): cannot open shared object )"
     "file",
     "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
     "NET/Plugin: libnccl-net.so: cannot open shared object file"},
    {"ENV-SHEBANG", Role::kRoot, "bad interpreter", R"((?P<interpreter>\S+): bad interpreter: )",
     "bash: /opt/env/bin/torchrun: /old/env/bin/python: bad interpreter: No such file or directory", "a bad interpreter of maladies"},
    {"ENV-BUILD", Role::kRoot, "Error building extension", R"(RuntimeError: Error building extension '(?P<name>\w+)')",
     "RuntimeError: Error building extension 'cpu_adam'", "Error building extension docs"},
    {"ENV-BUILD", Role::kRoot, "CUDA_HOME environment variable is not set",
     "(OSError|MissingCUDAException|RuntimeError): .*CUDA_HOME (environment variable is not set|does not exist)",
     "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
     "warning: CUDA_HOME environment variable is not set"},
    {"ENV-BUILD", Role::kRoot, "CUDA_HOME does not exist", "MissingCUDAException: CUDA_HOME does not exist",
     "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)",
     "CUDA_HOME does not exist here"},
    {"ENV-BUILD", Role::kRoot, "Ninja is required to load", R"(Ninja is required to load C\+\+ extensions)",
     "RuntimeError: Ninja is required to load C++ extensions", "Ninja is required to load the truck"},
    {"ENV-BUILD", Role::kRoot, "CUDAMismatchException", "CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version",
     "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 11.8 "
     "does not match the version torch was compiled with 12.1",
     "class CUDAMismatchException(Exception)"},
    {"ENV-BUILD", Role::kRoot, "The detected CUDA version",
     R"(The detected CUDA version \([\d.]+\) mismatches the version that was used to compile)",
     "RuntimeError: The detected CUDA version (11.7) mismatches the version that was used to compile PyTorch (12.1). "
     "Please make sure to use the same CUDA versions.",
     "The detected CUDA version is 12.1"},
    {"ENV-HUB", Role::kRoot, "find the requested files in the",
     "(LocalEntryNotFoundError|OSError|LocalEntry).*cannot find the requested files in the (disk|local) "
     R"(cache|couldn.t connect to 'https://huggingface\.co')",
     "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub "
     "and we cannot find the requested files in the local cache. Please check your connection and try again",
     "we cannot find the requested files in the archive"},
    {"ENV-HUB", Role::kRoot, "huggingface.co", R"((OSError: )?We couldn.t connect to 'https://huggingface\.co' to load)",
     "OSError: We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files",
     "see https://huggingface.co/docs"},
    {"ENV-HUB", Role::kRoot, "Max retries exceeded with url",
     R"(HTTPSConnectionPool\(host='(?P<host>[\w.-]+)', port=\d+\): Max retries exceeded with url)",
     "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded "
     "with url: /api/models/x",
     "Max retries exceeded with url /x"},
    {"ENV-HUB-ACCESS", Role::kRoot, "GatedRepoError", "GatedRepoError: 40[13]|You are trying to access a gated repo",
     "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-66)", "raise GatedRepoError"},
    {"ENV-HUB-ACCESS", Role::kRoot, "trying to access a gated repo", "You are trying to access a gated repo",
     "OSError: You are trying to access a gated repo.", "someone is trying to access a gated repo"},
    {"ENV-HUB-ACCESS", Role::kRoot, "RepositoryNotFoundError", "RepositoryNotFoundError: 40[14] Client Error",
     "huggingface_hub.utils._errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-66)", "raise RepositoryNotFoundError"},
    {"ENV-HUB-ACCESS", Role::kRoot, "is not a local folder and is not a valid",
     R"(OSError: (?P<model>\S+) is not a local folder and is not a valid model identifier)",
     "OSError: /models/Llama-3-8B is not a local folder and is not a valid model identifier listed on "
     "'https://huggingface.co/models'",
     "x is not a local folder and is not a valid URL"},
    {"ENV-HUB-ACCESS", Role::kRoot, "HFValidationError", "HFValidationError: Repo id must",
     "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
     "'/models/x/y'. Use `repo_type` argument if needed.",
     "class HFValidationError"},
    {"ENV-WANDB", Role::kRoot, "api_key not configured", R"(wandb\.errors\S*: api_key not configured)",
     "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])", "api_key not configured for mail"},
    {"ENV-WANDB", Role::kRoot, "wandb.errors.",
     R"(^wandb\.errors\.(CommError|AuthenticationError|errors\.CommError|errors\.AuthenticationError))",
     "wandb.errors.CommError: Run initialization has timed out after 90.0 sec.", "import wandb.errors.term"},
    {"ENV-EXT-LOCK", Role::kSymptom, "file_baton.py", R"(file_baton\.py", line \d+, in wait)",
     R"(  File "/opt/env/lib/python3.10/site-packages/torch/utils/file_baton.py", line 42, in wait)", "import file_baton.py"},
    {"ENV-CPU-TORCH", Role::kRoot, "Torch not compiled with CUDA enabled", "AssertionError: Torch not compiled with CUDA enabled",
     "AssertionError: Torch not compiled with CUDA enabled", "Torch not compiled with CUDA enabled is a message"},
    {"ENV-CPU-TORCH", Role::kRoot, "doesn't have NCCL built in", "Distributed package doesn't have NCCL built in",
     "RuntimeError: Distributed package doesn't have NCCL built in", "the box doesn't have NCCL built in"},
    {"ENV-SYNTAX", Role::kRoot, "SyntaxError: ", "^(SyntaxError|IndentationError|TabError): ", "SyntaxError: invalid syntax",
     "no SyntaxError: good"},
    {"ENV-ATTENTION", Role::kRoot, "FlashAttention2 has been toggled on", "FlashAttention2 has been toggled on, but it cannot be used",
     "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package "
     "flash_attn seems to be not installed.",
     "FlashAttention2 has been toggled on"},
    {"ENV-ATTENTION", Role::kRoot, "FlashAttention only supports", "FlashAttention only supports (Ampere|fp16)",
     "RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "docs: FlashAttention only supports causal"},
};

}  // namespace

std::span<const Signature> software_signatures() { return kSoftwareSignatures; }

}  // namespace diagnosis
