#!/usr/bin/python3
"""Hugging Face's Trainer on CPUs, with a model and data of its own: nothing is loaded."""
import sys

import torch
from transformers import Trainer, TrainingArguments


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        return {"loss": (self.layer(x).squeeze(-1) - labels).pow(2).mean()}


torch.manual_seed(1)
data = [{"x": torch.randn(4), "labels": torch.randn(())} for _ in range(32)]
arguments = TrainingArguments(output_dir=sys.argv[1], max_steps=4, logging_steps=1, per_device_train_batch_size=4, save_strategy="no",
                              report_to=[], no_cuda=True)
trainer = Trainer(model=Net(), args=arguments, train_dataset=data)
trainer.train()
sys.stdout.write(f"trainer {arguments.process_index}/{arguments.world_size}: {arguments.parallel_mode.value}\n")
sys.stdout.flush()
