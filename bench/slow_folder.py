#!/usr/bin/python3
"""A folder in memory that answers every operation, but each only after a while: slow_folder.py MOUNT_POINT SECONDS"""
import stat
import sys
import time

import fusepy as fuse


class SlowFolder(fuse.Operations):
    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, operation, *arguments):
        time.sleep(self.seconds)
        return super().__call__(operation, *arguments)

    def getattr(self, path, handle=None):
        if path != "/":
            raise fuse.FuseOSError(2)  # ENOENT
        return {"st_mode": stat.S_IFDIR | 0o777, "st_nlink": 2, "st_uid": 0, "st_gid": 0}

    def readdir(self, path, handle):
        return [".", ".."]

    def statfs(self, path):
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 1 << 20, "f_bavail": 1 << 20, "f_bfree": 1 << 20, "f_files": 1 << 20,
                "f_ffree": 1 << 20, "f_favail": 1 << 20}


if __name__ == "__main__":
    fuse.FUSE(SlowFolder(float(sys.argv[2])), sys.argv[1], foreground=True, allow_other=True, nothreads=False)
