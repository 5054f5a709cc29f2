#!/usr/bin/python3
"""accelerate's own test_utils/scripts/test_distributed_data_loop.py on CPUs: what it tests of uneven batches. Its main() also joins uneven
inputs, which accelerate does for GPUs only (accelerator.py, join_uneven_inputs): on CPUs its ranks wait for each other for ever, under any
launcher."""
import sys

from accelerate.test_utils.scripts import test_distributed_data_loop as loop

loop.test_default_ensures_even_batch_sizes()
loop.test_can_disable_even_batches()
accelerator = loop.create_accelerator()
loop.test_join_raises_warning_for_non_ddp_distributed(accelerator)
accelerator.wait_for_everyone()
sys.stdout.write(f"data loop {accelerator.process_index}/{accelerator.num_processes}\n")
sys.stdout.flush()
