// Data loading, checkpoints.
#include "diagnosis/signature.h"

namespace diagnosis {
namespace {

constexpr Signature kDataSignatures[] = {
    {"DATA-COLLATE", Role::kRoot, "stack expects each tensor to be equal size", "stack expects each tensor to be equal size, but got",
     "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, 224, 224] at "
     "entry 5",
     "stack expects each tensor to be equal size"},
    {"DATA-COLLATE", Role::kRoot, "in list of batch should be of equal size", "each element in list of batch should be of equal size",
     "RuntimeError: each element in list of batch should be of equal size", "the items in list of batch should be of equal size"},
    {"DATA-COLLATE", Role::kRoot, "Unable to create tensor, you should probably",
     "ValueError: Unable to create tensor, you should probably activate (truncation|padding)",
     "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' "
     "'truncation=True' to have batched tensors with the same length.",
     "Unable to create tensor, you should probably know"},
    {"DATA-COLLATE", Role::kRoot, "default_collate: batch must contain", "TypeError: default_collate: batch must contain tensors",
     "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class "
     "'PIL.Image.Image'>",
     "default_collate: batch must contain love"},
    {"DATA-WORKER-DIED", Role::kSymptom, "is killed by signal: ",
     R"(DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (Killed|Segmentation )"
     "fault|Aborted|Terminated|Floating point exception)",
     "RuntimeError: DataLoader worker (pid 4021) is killed by signal: Killed.", "worker is killed by signal: none"},
    {"DATA-WORKER-DIED", Role::kSymptom, ") exited unexpectedly",
     R"(DataLoader worker \(pid\(?s?\)? (?P<pid>[\d, ]+)\) exited unexpectedly)",
     "RuntimeError: DataLoader worker (pid(s) 4021, 4022) exited unexpectedly", "the guest (bob) exited unexpectedly"},
    {"DATA-WORKER-DIED", Role::kSymptom, "DataLoader timed out after", R"(RuntimeError: DataLoader timed out after \d+ seconds)",
     "RuntimeError: DataLoader timed out after 120 seconds", "if the DataLoader timed out after a while"},
    {"DATA-CORRUPT-FILE", Role::kRoot, "cannot identify image file", "UnidentifiedImageError: cannot identify image file",
     "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f1>", "cannot identify image files by name"},
    {"DATA-CORRUPT-FILE", Role::kRoot, "image file is truncated", "OSError: image file is truncated",
     "OSError: image file is truncated (12 bytes not processed)", "image file is truncated in the UI"},
    {"DATA-CORRUPT-FILE", Role::kRoot, "ArrowInvalid", R"((pyarrow\.lib\.)?ArrowInvalid: )", "pyarrow.lib.ArrowInvalid: Not an Arrow file",
     "except ArrowInvalid as e"},
    {"DATA-CORRUPT-FILE", Role::kRoot, "unexpected end of file",
     R"((tarfile\.ReadError|EOFError|zlib\.error|webdataset.*): .*unexpected end of (file|data))",
     "tarfile.ReadError: unexpected end of file", "unexpected end of file formats"},
    {"DATA-PREPARE", Role::kRoot, "DatasetGenerationError", R"(^(datasets\.\S+\.)?DatasetGenerationError: )",
     "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset", "except DatasetGenerationError:"},
    {"DATA-PICKLE", Role::kRoot, "cannot serialize a bytes object larger than 4",
     "OverflowError: cannot serialize a bytes object larger than 4 ?Gi?B",
     "OverflowError: cannot serialize a bytes object larger than 4 GiB", "cannot serialize a bytes object larger than 4 of mine"},
    {"DATA-PICKLE", Role::kRoot, "struct.error: 'i' format requires", R"(struct\.error: 'i' format requires -?\d+ <= number)",
     "struct.error: 'i' format requires -2147483648 <= number <= 2147483647", "struct.error: 'i' format requires care"},
    {"DATA-PICKLE", Role::kRoot, "Can't pickle ", R"((AttributeError|_pickle\.PicklingError|TypeError): (Can't|cannot) pickle )",
     "AttributeError: Can't pickle local object 'main.<locals>.collate'", "Can't pickle cucumbers"},
    {"DATA-SAMPLER", Role::kRoot, "rank should be in the interval",
     R"(ValueError: Invalid rank (?P<given>\d+), rank should be in the interval)",
     "ValueError: Invalid rank 4, rank should be in the interval [0, 3]", "the rank should be in the interval"},
    {"DATA-EMPTY", Role::kRoot, "num_samples should be a positive integer",
     "ValueError: num_samples should be a positive integer value, but got num_samples=0",
     "ValueError: num_samples should be a positive integer value, but got num_samples=0", "num_samples should be a positive integer"},
    {"CKPT-KEYS", Role::kRoot, "Error(s) in loading state_dict for", R"(Error\(s\) in loading state_dict for (?P<model>[A-Za-z_]\w*):)",
     "RuntimeError: Error(s) in loading state_dict for DistributedDataParallel:", "Error(s) in loading state_dict for 3 models"},
    {"DATA-MODULE-PREFIX", Role::kRoot, R"(in state_dict: "module.)", R"((Missing|Unexpected) key\(s\) in state_dict: "module\.)",
     R"(Missing key(s) in state_dict: "module.conv1.weight", "module.bn1.weight".)", R"(keys in state_dict: "module.x")"},
    {"CKPT-KEYS", Role::kRoot, "size mismatch for ", R"(size mismatch for \S+: copying a param with shape)",
     "size mismatch for lm_head.weight: copying a param with shape torch.Size([32000, 4096]) from checkpoint, the "
     "shape in current model is torch.Size([32001, 4096]).",
     "size mismatch for shoes"},
    {"CKPT-BROKEN", Role::kRoot, "failed finding central directory",
     "PytorchStreamReader failed reading zip archive: failed finding central directory",
     "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
     "zip: failed finding central directory"},
    {"CKPT-BROKEN", Role::kRoot, "PytorchStreamReader failed", "PytorchStreamReader failed (reading|locating) (file|zip archive)",
     "RuntimeError: PytorchStreamReader failed reading file data/203: file read failed", "the PytorchStreamReader failed"},
    {"CKPT-BROKEN", Role::kRoot,
     "SafetensorError: ", "SafetensorError: Error while deserializing header: (Header|Invalid|Metadata|HeaderToo|Metadata)",
     "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "except SafetensorError: pass"},
    {"CKPT-BROKEN", Role::kRoot,
     "UnpicklingError: ", R"((_pickle|pickle)\.UnpicklingError: (pickle data was truncated|invalid load key|unpickling stack underflow))",
     "_pickle.UnpicklingError: pickle data was truncated", "raise UnpicklingError: no"},
    {"CKPT-BROKEN", Role::kRoot, "EOFError: Ran out of input", "EOFError: Ran out of input", "EOFError: Ran out of input",
     "Ran out of input"},
    {"CKPT-WEIGHTS-ONLY", Role::kRoot, "Weights only load failed", "UnpicklingError: Weights only load failed",
     "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options",
     "Weights only load failed to impress"},
    {"CKPT-MISSING", Role::kRoot, "checkpoint",
     "(ValueError: Can't find a valid checkpoint at|Unable to find latest file at|FileNotFoundError: .*checkpoint.* "
     "does not exist)",
     "ValueError: Can't find a valid checkpoint at output/checkpoint-500", "saved checkpoint to output"},
    {"CKPT-MISSING", Role::kRoot, "No valid checkpoint found in output directory", "No valid checkpoint found in output directory",
     "ValueError: No valid checkpoint found in output directory (output)", "No valid checkpoint"},
    {"CKPT-MISSING", Role::kRoot, "does not appear to have a file named", R"(OSError: \S+ does not appear to have a file named)",
     "OSError: /models/llama does not appear to have a file named config.json.", "it does not appear to have a file named so"},
    {"CKPT-SHARDS", Role::kRoot, "zero_pp_rank_", R"((AssertionError|FileNotFoundError|Error).*zero_pp_rank_\d+_mp_rank_\d+)",
     "FileNotFoundError: [Errno 2] No such file or directory: 'out/global_step500/zero_pp_rank_9_mp_rank_00_optim_stat"
     "es.pt'",
     "saving zero_pp_rank_0_mp_rank_00_optim_states.pt"},
};

}  // namespace

std::span<const Signature> data_signatures() { return kDataSignatures; }

}  // namespace diagnosis
