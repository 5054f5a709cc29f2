#!/usr/bin/env python3
# pry.py -- another user of a host at the files and processes of somebody: reads lines "path P" and "pid N", tries on each whatever could
# read, change, replace or end it, and prints per attempt the name of the error, or "DONE". Of a process that ended meanwhile it says
# "GONE pid N", and leaves out what found no process any more.
import ctypes
import errno
import os
import signal
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)


def attempt(what, call):
    try:
        call()
        said.append("DONE " + what)
    except OSError as error:
        said.append(errno.errorcode.get(error.errno, "E?") + " " + what)


def connect(path):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(2)
    peer.connect(path)


def attach(pid):
    if libc.ptrace(16, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def through(path, mode):
    os.close(os.open(path, mode | os.O_NONBLOCK))


for line in sys.stdin:
    said = []
    kind, subject = line.rstrip("\n").split(" ", 1)
    if kind == "path":
        attempt("read " + subject, lambda: through(subject, os.O_RDONLY))
        attempt("append to " + subject, lambda: through(subject, os.O_WRONLY | os.O_APPEND))
        attempt("list " + subject, lambda: os.listdir(subject) if os.path.isdir(subject) else os.truncate(subject, 0))
        attempt("create in " + subject, lambda: through(subject + "/x", os.O_WRONLY | os.O_CREAT))
        attempt("connect to " + subject, lambda: connect(subject))
        attempt("rename " + subject, lambda: os.rename(subject, subject + "-away"))
        attempt("link " + subject, lambda: os.link(subject, "/tmp/linked"))
        attempt("chmod " + subject, lambda: os.chmod(subject, 0o777))
        attempt("remove " + subject, lambda: os.unlink(subject))
    else:
        pid, proc = int(subject), "/proc/" + subject
        for name in ("environ", "mem", "maps", "fd/0", "fd/1", "cwd/x", "root/x"):
            attempt("read " + proc + "/" + name, lambda: through(proc + "/" + name, os.O_RDONLY))
        attempt("write to " + proc + "/mem", lambda: through(proc + "/mem", os.O_WRONLY))
        attempt("write to " + proc + "/fd/1", lambda: through(proc + "/fd/1", os.O_WRONLY))
        attempt("list " + proc + "/fd", lambda: os.listdir(proc + "/fd"))
        attempt("trace " + subject, lambda: attach(pid))
        for number in (0, signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
            attempt("signal " + subject, lambda: os.kill(pid, number))
        if not os.path.exists(proc):
            said = [word for word in said if not word.startswith(("ENOENT ", "ESRCH "))] + ["GONE pid " + subject]
    for word in said:
        print(word)
