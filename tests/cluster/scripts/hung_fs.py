# Mounts a FUSE file system at argv[1] whose server never answers: every stat() below it waits for ever.
import ctypes, os, signal, sys

fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"hung", sys.argv[1].encode(), b"fuse.hung", 0, options) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
signal.pause()
