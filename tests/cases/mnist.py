"""Files in the form of MNIST's."""

import struct

NAMES = {
    "train-images-idx3-ubyte": (0, "images"),
    "train-labels-idx1-ubyte": (0, "labels"),
    "t10k-images-idx3-ubyte": (1, "images"),
    "t10k-labels-idx1-ubyte": (1, "labels"),
}


def idx(sizes, payload=None, code=8):
    count = 1
    for size in sizes:
        count *= size
    payload = bytes(i % 10 for i in range(count)) if payload is None else payload
    return struct.pack(f">HBB{len(sizes)}I", 0, code, len(sizes), *sizes) + payload
