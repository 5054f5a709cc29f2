"""`python3 -m torch.distributed.run` of Debian 12, made to work: torch 1.13's Std.from_str iterates an IntFlag, which since
Python 3.11 leaves out the member of value 0, so that the default `--redirects 0` gives None."""
import sys

from torch.distributed import run
from torch.distributed.elastic.multiprocessing import api

original = api.Std.from_str
for module in (api, sys.modules["torch.distributed.elastic.multiprocessing"], run):
    module.Std.from_str = classmethod(lambda cls, text: api.Std.NONE if text == "0" else original(text))
run.main(sys.argv[1:])
