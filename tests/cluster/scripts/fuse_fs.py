# fuse_fs.py hung|empty FOLDER: mounts a FUSE file system there. `hung` never answers: every stat() below it waits for ever. `empty` calls
# itself an sshfs mount of nas:/data, what the kernel shows of a file server without one: it speaks the protocol of <linux/fuse.h> as
# far as an empty folder needs it.
import ctypes, errno, os, signal, struct, sys

kind, folder = sys.argv[1:]
source, fs_type = {"hung": (b"hung", b"fuse.hung"), "empty": (b"nas:/data", b"fuse.sshfs")}[kind]
fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(source, folder.encode(), fs_type, 0, options) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
if kind == "hung":
    signal.pause()

LOOKUP, GETATTR, STATFS, INIT, OPENDIR, READDIR = 1, 3, 17, 26, 27, 28
FORGET, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 2, 29, 34, 36, 42
attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 512, 0)
answers = {
    GETATTR: struct.pack("<QII", 1, 0, 0) + attributes,
    STATFS: struct.pack("<QQQQQIIII24x", 1 << 20, 1 << 19, 1 << 19, 1000, 999, 4096, 255, 4096, 0),
    INIT: struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 10, 4096, 1, 1, 0, 0),
    OPENDIR: struct.pack("<QII", 1, 0, 0),
    READDIR: b"",
    RELEASEDIR: b"",
    ACCESS: b"",
}
while True:
    try:
        request = os.read(fuse, 1 << 17)
    except OSError as error:
        if error.errno == errno.ENODEV:  # unmounted
            break
        continue
    length, opcode, unique = struct.unpack_from("<IIQ", request)
    if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
        continue
    body = answers.get(opcode)
    code = 0 if body is not None else -(errno.ENOENT if opcode == LOOKUP else errno.ENOSYS)
    body = body or b""
    os.write(fuse, struct.pack("<IiQ", 16 + len(body), code, unique) + body)
