#!/usr/bin/env python3
"""Writes resnet50.json and gpt2_small.json from the architectures: the gradient tensors of one training step, in the
order in which the model declares its parameters. docs/workloads.md describes the format. Usage: make_workloads.py [DIR]"""

import json
import math
import os
import sys

MIB = 1 << 20
# What PyTorch's DistributedDataParallel does by default.
BUCKETING = {"first_bytes": MIB, "bytes": 25 * MIB, "order": "reverse"}


def resnet50():
    """Bottleneck blocks (3, 4, 6, 3), as torchvision declares them: per convolution a weight and its batch norm's two."""
    tensors = []

    def convolution(name, norm, inputs, outputs, size):
        tensors.append((f"{name}.weight", [outputs, inputs, size, size]))
        tensors.append((f"{norm}.weight", [outputs]))
        tensors.append((f"{norm}.bias", [outputs]))

    convolution("conv1", "bn1", 3, 64, 7)
    inputs = 64
    for layer, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], start=1):
        for block in range(blocks):
            at = f"layer{layer}.{block}"
            convolution(f"{at}.conv1", f"{at}.bn1", inputs, width, 1)
            convolution(f"{at}.conv2", f"{at}.bn2", width, width, 3)
            convolution(f"{at}.conv3", f"{at}.bn3", width, 4 * width, 1)
            if block == 0:
                convolution(f"{at}.downsample.0", f"{at}.downsample.1", inputs, 4 * width, 1)
            inputs = 4 * width
    tensors.append(("fc.weight", [1000, inputs]))
    tensors.append(("fc.bias", [1000]))
    return tensors


def gpt2_small():
    """12 blocks of width 768 over 50257 tokens and 1024 positions; the output layer shares the token embedding."""
    width = 768
    tensors = [("transformer.wte.weight", [50257, width]), ("transformer.wpe.weight", [1024, width])]
    for block in range(12):
        at = f"transformer.h.{block}"
        for name, shape in [("ln_1.weight", [width]), ("ln_1.bias", [width]),
                            ("attn.c_attn.weight", [width, 3 * width]), ("attn.c_attn.bias", [3 * width]),
                            ("attn.c_proj.weight", [width, width]), ("attn.c_proj.bias", [width]),
                            ("ln_2.weight", [width]), ("ln_2.bias", [width]),
                            ("mlp.c_fc.weight", [width, 4 * width]), ("mlp.c_fc.bias", [4 * width]),
                            ("mlp.c_proj.weight", [4 * width, width]), ("mlp.c_proj.bias", [width])]:
            tensors.append((f"{at}.{name}", shape))
    tensors += [("transformer.ln_f.weight", [width]), ("transformer.ln_f.bias", [width])]
    return tensors


def write(directory, name, tensors, num_tensors, num_parameters):
    assert len(tensors) == num_tensors, (name, len(tensors))
    total = sum(math.prod(shape) for _, shape in tensors)
    assert total == num_parameters, (name, total)
    rows = ",\n".join("  " + json.dumps({"name": tensor, "shape": shape}) for tensor, shape in tensors)
    with open(os.path.join(directory, f"{name}.json"), "w", encoding="utf-8") as file:
        file.write('{"schema": "weft-workload-1",\n "name": %s,\n "type": "f32",\n "tensors": [\n%s],\n "bucketing": %s}\n'
                   % (json.dumps(name), rows, json.dumps(BUCKETING)))


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    write(directory, "resnet50", resnet50(), 161, 25_557_032)
    write(directory, "gpt2_small", gpt2_small(), 148, 124_439_808)


if __name__ == "__main__":
    main()
