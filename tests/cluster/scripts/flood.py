#!/usr/bin/python3
"""Prints argv[1] numbered lines on stdout and as many on stderr, as fast as it can, of many lengths."""
import os
import sys

rank = os.environ["RANK"]
for i in range(int(sys.argv[1])):
    text = chr(97 + i % 26) * (i * 37 % 300)
    sys.stdout.write(f"o{rank}-{i} {text}.\n")
    sys.stderr.write(f"e{rank}-{i} {text}.\n")
