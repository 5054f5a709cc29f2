#!/usr/bin/python3
"""python3 -m torch.distributed.run, with the one function of torch 1.13 that fails under Python 3.11 replaced: Std.from_str looks for
the zero member of an IntFlag by iterating over it, which since 3.11 leaves that member out."""
from torch.distributed.elastic.multiprocessing import api
from torch.distributed.run import main

original = api.Std.from_str.__func__


def from_str(cls, text):
    return cls.NONE if text == "0" else original(cls, text)


api.Std.from_str = classmethod(from_str)
main()
