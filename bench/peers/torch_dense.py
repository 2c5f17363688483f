#!/usr/bin/env python3
"""The dense peer measured by another program: torch's matmul, bf16, the shapes of bench/workloads/spmm-blocks.toml.

    python3 bench/peers/torch_dense.py [m n k ...]

Prints microseconds (median of 30, device events) and TFLOP/s for each shape. `hopper-sparse bench` picks the fastest of
cuBLASLt's algorithms, torch takes the first that its heuristics name: the bench's time should be the same or a little
less. Where it is much more, the harness is at fault.
"""

import statistics
import sys

import torch

SHAPES = [(8192, 8192, 8192), (18944, 16384, 3584), (3584, 16384, 18944), (4096, 4096, 4096)]
NUM_WARM_UP, NUM_SAMPLES = 5, 30
CACHE_BYTES = 256 << 20


def median_us(m, n, k):
    """The median time of C = A B, B and C row-major, with a cold cache."""
    a = torch.rand(m, k, device="cuda").mul(2).sub(1).to(torch.bfloat16)
    b = torch.rand(k, n, device="cuda").mul(2).sub(1).to(torch.bfloat16)
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    samples = []
    for index in range(NUM_WARM_UP + NUM_SAMPLES):
        cache.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.matmul(a, b, out=c)
        end.record()
        end.synchronize()
        if index >= NUM_WARM_UP:
            samples.append(start.elapsed_time(end) * 1e3)
    return statistics.median(samples)


def main():
    sizes = [int(size) for size in sys.argv[1:]]
    shapes = list(zip(sizes[::3], sizes[1::3], sizes[2::3])) if sizes else SHAPES
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    for m, n, k in shapes:
        time = median_us(m, n, k)
        print(f"{m} x {n} x {k}: {time:.1f} us, {2 * m * n * k / time * 1e-6:.0f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
