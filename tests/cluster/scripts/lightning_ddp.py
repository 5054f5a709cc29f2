#!/usr/bin/python3
"""Lightning's DDP on CPUs: lightning_ddp.py DEVICES NODES [FOLDER of CSVs]. Says who it is, who told it, and whether all ranks have
the same weights."""
import sys
import warnings

warnings.filterwarnings("ignore")
import torch

try:
    import pytorch_lightning as pl
except ImportError:
    import lightning.pytorch as pl


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch).pow(2).mean()
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(1)
data = torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=4)
logger = pl.loggers.CSVLogger(sys.argv[3], name="digits", flush_logs_every_n_steps=1) if len(sys.argv) > 3 else False
trainer = pl.Trainer(accelerator="cpu", strategy="ddp", devices=int(sys.argv[1]), num_nodes=int(sys.argv[2]), max_epochs=1, logger=logger,
                     log_every_n_steps=1, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
net = Net()
trainer.fit(net, data)
mine = sum(parameter.sum() for parameter in net.parameters()).detach()
all_of_them = [torch.zeros(()) for _ in range(trainer.world_size)]
torch.distributed.all_gather(all_of_them, mine)
same = all(bool(one == mine) for one in all_of_them)
sys.stdout.write(f"lightning {trainer.global_rank}/{trainer.world_size} local {trainer.local_rank} node {trainer.node_rank}: "
                 f"{type(trainer.strategy.cluster_environment).__name__}, same weights {same}\n")
sys.stdout.flush()
