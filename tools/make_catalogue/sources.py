"""Where each project keeps its messages."""
import re

E, W = 'error', 'warning'

FILES = {
    'nccl': ['src/*.cc', 'src/*.h', 'src/*.cu'],
    'ofi': ['src/*.c', 'src/*.cpp', 'src/*.cc', 'include/*.h'],
    'torch': ['torch/csrc/distributed/c10d/*', 'c10/cuda/*.cpp', 'c10/cuda/*.h', 'torch/distributed/*.py', 'torch/nn/parallel/*.py'],
    'gloo': ['gloo/*.cc', 'gloo/*.h'],
    'deepspeed': ['deepspeed/launcher/*.py', 'deepspeed/runtime/*.py', 'deepspeed/comm/*.py', 'deepspeed/utils/*.py',
                  'deepspeed/elasticity/*.py', 'deepspeed/checkpoint/*.py', 'deepspeed/__init__.py', 'op_builder/*.py',
                  'deepspeed/moe/*.py', 'deepspeed/pipe/*.py'],
    'accelerate': ['src/accelerate/*.py'],
    'transformers': ['src/transformers/trainer*.py', 'src/transformers/training_args*.py', 'src/transformers/modeling_utils.py',
                     'src/transformers/deepspeed.py', 'src/transformers/data/data_collator.py',
                     'src/transformers/utils/loading_report.py', 'src/transformers/integrations/deepspeed.py',
                     'src/transformers/integrations/accelerate.py', 'src/transformers/integrations/fsdp.py',
                     'src/transformers/integrations/liger.py', 'src/transformers/integrations/peft.py',
                     'src/transformers/integrations/tensor_parallel.py'],
    'llamafactory': ['src/llmtuner/*.py', 'src/llamafactory/*.py'],
    'lightning': ['src/lightning/fabric/*.py', 'src/lightning/pytorch/trainer/*.py', 'src/lightning/pytorch/strategies/*.py',
                  'src/lightning/pytorch/accelerators/*.py', 'src/lightning/pytorch/plugins/*.py', 'src/lightning/pytorch/loops/*.py',
                  'pytorch_lightning/trainer/*.py', 'pytorch_lightning/strategies/*.py'],
    'megatron': ['megatron/arguments.py', 'megatron/checkpointing.py', 'megatron/training.py', 'megatron/initialize.py',
                 'megatron/training/*.py', 'megatron/core/parallel_state.py', 'megatron/core/model_parallel_config.py',
                 'megatron/core/dist_checkpointing/*.py', 'megatron/core/distributed/*.py', 'megatron/core/optimizer/*.py',
                 'megatron/core/pipeline_parallel/*.py', 'megatron/core/transformer/transformer_config.py',
                 'megatron/core/datasets/*.py'],
}

# What no training on several GPUs prints.
WITHOUT = [r'(^|/)tests?/', r'_test\.', r'(^|/)benchmarks?/', r'(^|/)examples?/', r'/ext-net/', r'_shard(ed|ing)', r'/rpc/',
           r'distributed/tensor/', r'/_tools/', r'distributed/_tensor', r'/autotuning/', r'/quantiz', r'/webui/', r'/api/',
           r'/pipelining/', r'/hpu', r'/xla', r'/npu', r'/habana', r'distributed/nn/', r'/eval/', r'/colossalai', r'bagua', r'ipu']

# C and C++: name -> (severity, arguments in front of the text, printf's or fmt's places in it). "<<" at the end: a stream.
MACROS = {
    'nccl': {'WARN': (E, 0, True), 'WARN_ONCE': (E, 0, True)},
    'ofi': {'NCCL_OFI_WARN': (E, 0, True)},
    'gloo': {'GLOO_ENFORCE(?:_EQ|_NE|_GT|_GE|_LT|_LE)?': (E, 1, False), 'GLOO_THROW(?:_[A-Z_]+)?': (E, 0, False),
             'GLOO_ERROR': (E, 0, False)},
    'torch': {'TORCH_CHECK(?:_VALUE|_TYPE|_INDEX|_NOT_IMPLEMENTED)?': (E, 1, False), 'TORCH_CHECK_WITH(?:_MSG)?': (E, 2, False),
              'C10_THROW_ERROR': (E, 1, False), 'TORCH_WARN(?:_ONCE)?': (W, 0, False), 'C10D_ERROR': (E, 0, True),
              'C10D_WARNING': (W, 0, True), 'LOG(ERROR)<<': (E, 0, False), 'LOG(WARNING)<<': (W, 0, False),
              'throw std::runtime_error': (E, 0, False), 'c10::str': (E, 0, False), 'fmt::format': (E, 0, True),
              'LOG(FATAL)<<': (E, 0, False)},
}


def short_path(path):
    """What a log, or a traceback, would name."""
    return re.sub(r'^(src/|torch/csrc/distributed/)', '', path).replace(' ', '_')
