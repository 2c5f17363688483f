#!/usr/bin/env python3
"""Attention by torch, as a peer that `hopper-sparse bench run attention` drives: one JSON object a line, in and out.

The first line out says whether there is a peer at all: {"status": "ready" or "refused", "note": "..."}. Then each command
has one reply; a reply with "status": "refused" or "failed" has a "note" that says why.

    {"command": "prepare", "backend": "cudnn", "workload": {...}}  -> {"status": "ready", "note": "..."}
    {"command": "error", "backend": "cudnn"}                       -> {"error": e, "limit": l}
    {"command": "warm", "backend": "cudnn", "seconds": x}          -> {"status": "ready"}
    {"command": "time", "backend": "cudnn", "lead": m, "launches": n} -> {"microseconds": the time of one of n}
    {"command": "quit"}

A workload has "queries" and "keys" (the lengths of each sequence), "packed" (whether they lie end to end, else all have one
length), "heads", "kv_heads", "head_dim", "dtype" ("bf16" or "f16"), "mask" ("full" or "causal"), "scale", "softcap" and
"seed". Q, K and V are normal numbers of its seed, stored as [batch, tokens, heads, head_dim]. The same workload may be
prepared for several backends: they share Q, K and V.

The time is that between two events around n launches, after m that are not counted: those put what another process drove
out of the caches back. Nothing of the pipe is in it.
"""

import itertools
import json
import math
import sys
import time
import traceback

SAMPLED_ROWS = 64
# How much larger than a plain implementation's error another may be.
TOLERANCE = 2.0


class Refused(Exception):
    """The peer does not take the workload."""


def sdpa(torch, name):
    """torch's scaled_dot_product_attention, by one backend only."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = getattr(SDPBackend, name, None)
    if backend is None:
        raise Refused(f"torch {torch.__version__} has no SDPBackend.{name}")

    def prepare(inputs):
        if inputs.starts is not None:
            raise Refused("torch has no packed sequences for this backend")
        # [batch, heads, tokens, head_dim], as views.
        q, k, v = (tensor.transpose(1, 2) for tensor in (inputs.q, inputs.k, inputs.v))
        options = {"is_causal": inputs.is_causal, "scale": inputs.scale}
        if inputs.kv_heads != inputs.heads:
            options["enable_gqa"] = True

        def launch():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2)

        return launch

    return prepare


def flash2(torch):
    """FlashAttention-2: by scaled_dot_product_attention, and where sequences are packed by what that calls."""

    def prepare(inputs):
        if inputs.starts is None:
            return sdpa(torch, "FLASH_ATTENTION")(inputs)
        q, k, v = (tensor[0] for tensor in (inputs.q, inputs.k, inputs.v))
        offsets = torch.tensor(inputs.starts, dtype=torch.int32, device="cuda")
        longest = max(length for length, _ in inputs.lengths)

        def launch():
            results = torch.ops.aten._flash_attention_forward(
                q, k, v, offsets, offsets, longest, longest, 0.0, inputs.is_causal, False, scale=inputs.scale)
            return results[0].unsqueeze(0)

        return launch

    return prepare


# A backend is a function of the inputs that returns a launch; the launch returns O as [batch, tokens, heads, head_dim].
BACKENDS = {
    "cudnn": lambda torch: sdpa(torch, "CUDNN_ATTENTION"),
    "flash2": flash2,
}


class Inputs:
    """Q, K and V of a workload."""

    def __init__(self, torch, workload):
        self.torch = torch
        self.heads, self.kv_heads = workload["heads"], workload["kv_heads"]
        self.dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(workload["dtype"])
        if self.dtype is None:
            raise Refused(f"it takes bf16 and f16, not {workload['dtype']}")
        if workload["mask"] not in ("full", "causal"):
            raise Refused(f"it has no mask `{workload['mask']}`")
        if workload["softcap"] is not None:
            raise Refused("it has no softcap")
        self.is_causal, self.scale = workload["mask"] == "causal", workload["scale"]
        self.lengths = list(zip(workload["queries"], workload["keys"]))
        if self.is_causal and any(queries != keys for queries, keys in self.lengths):
            raise Refused("torch aligns a causal mask at the first key, not at the last")
        batch, (queries, keys) = len(self.lengths), self.lengths[0]
        self.starts = None
        if workload["packed"]:
            if workload["queries"] != workload["keys"]:
                raise Refused("packed sequences have as many queries as keys here")
            # [1, tokens, heads, head_dim], and where each sequence begins.
            self.starts = [0, *itertools.accumulate(workload["keys"])]
            batch, queries, keys = 1, self.starts[-1], self.starts[-1]
        random = torch.Generator(device="cuda")
        random.manual_seed(workload["seed"])

        def draw(tokens, heads):
            shape = (batch, tokens, heads, workload["head_dim"])
            return torch.randn(shape, generator=random, device="cuda", dtype=torch.float32).to(self.dtype)

        self.q = draw(queries, self.heads)
        self.k, self.v = draw(keys, self.kv_heads), draw(keys, self.kv_heads)

    def sequence(self, tensor, index):
        """[tokens, heads, head_dim] of one sequence."""
        if self.starts is None:
            return tensor[index]
        return tensor[0, self.starts[index]:self.starts[index + 1]]


def row_by(torch, query, keys, values, scale, dtype):
    """One row of O: exactly, or, with `dtype`, as a plain implementation in 32 bits that rounds P and O to `dtype`."""
    kind = torch.float64 if dtype is None else torch.float32
    scores = keys.to(kind) @ query.to(kind) * scale
    weights = torch.exp(scores - scores.max())
    if dtype is None:
        return weights @ values.to(kind) / weights.sum()
    row = weights.to(dtype).to(kind) @ values.to(kind) / weights.sum()
    return row.to(dtype).to(torch.float64)


def compare(torch, inputs, output):
    """The relative Frobenius error of sampled rows, and the largest that is accepted."""
    picks = torch.Generator().manual_seed(1)

    def pick(limit):
        return int(torch.randint(limit, (1,), generator=picks))

    wrong, plain, size = 0.0, 0.0, 0.0
    for _ in range(SAMPLED_ROWS):
        index, head = pick(len(inputs.lengths)), pick(inputs.heads)
        queries, keys = inputs.lengths[index]
        if queries == 0:
            continue
        row = pick(queries)
        seen = min(keys, row + keys - queries + 1) if inputs.is_causal else keys
        kv_head = head // (inputs.heads // inputs.kv_heads)
        query = inputs.sequence(inputs.q, index)[row, head]
        k, v = (inputs.sequence(tensor, index)[:seen, kv_head] for tensor in (inputs.k, inputs.v))
        exact = row_by(torch, query, k, v, inputs.scale, None)
        found = inputs.sequence(output, index)[row, head].to(torch.float64)
        wrong += float((found - exact).square().sum())
        naive = row_by(torch, query, k, v, inputs.scale, inputs.dtype)
        plain += float((naive - exact).square().sum())
        size += float(exact.square().sum())
    return (wrong / size) ** 0.5, TOLERANCE * (plain / size) ** 0.5


class Peer:
    """What has been prepared."""

    def __init__(self, torch):
        self.torch = torch
        self.workload, self.inputs, self.launches = None, None, {}
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def prepare(self, backend, workload):
        torch = self.torch
        if workload != self.workload:
            # The memory of the last workload is given back first: another process needs some, too.
            self.workload, self.inputs, self.launches = None, None, {}
            torch.cuda.empty_cache()
            self.inputs = Inputs(torch, workload)
            self.workload = workload
        if backend not in BACKENDS:
            raise Refused(f"it has no backend `{backend}`")
        launch = BACKENDS[backend](torch)(self.inputs)
        try:
            launch()
        except RuntimeError as error:
            torch.cuda.synchronize()
            raise Refused(first_line(error)) from error
        torch.cuda.synchronize()
        self.launches[backend] = launch
        return {"status": "ready", "note": f"torch {torch.__version__}"}

    def launch_of(self, backend):
        if backend not in self.launches:
            raise RuntimeError(f"{backend} was not prepared, or in a process that has ended")
        return self.launches[backend]

    def error(self, backend):
        error, limit = compare(self.torch, self.inputs, self.launch_of(backend)())
        # JSON has no NaN: what is not a number is null.
        return {"error": error if math.isfinite(error) else None, "limit": limit}

    def warm(self, backend, seconds):
        launch, end = self.launch_of(backend), time.monotonic() + seconds
        while time.monotonic() < end:
            launch()
            self.torch.cuda.synchronize()
        return {"status": "ready"}

    def time(self, backend, lead, launches):
        launch = self.launch_of(backend)
        for _ in range(lead):
            launch()
        self.start.record()
        for _ in range(launches):
            launch()
        self.end.record()
        self.end.synchronize()
        return {"microseconds": self.start.elapsed_time(self.end) * 1e3 / launches}

    def answer(self, request):
        command = request.pop("command", None)
        actions = {"prepare": self.prepare, "error": self.error, "warm": self.warm, "time": self.time}
        if command not in actions:
            raise ValueError(f"there is no command `{command}`")
        with self.torch.inference_mode():
            return actions[command](**request)


def first_line(error):
    """An exception in one line, not too long for a table."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def say(reply):
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main():
    try:
        import torch
    except ImportError as error:
        say({"status": "refused", "note": f"python3 has no torch: {error}"})
        return
    if not torch.cuda.is_available():
        say({"status": "refused", "note": f"torch {torch.__version__} sees no GPU"})
        return
    peer = Peer(torch)
    say({"status": "ready", "note": f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"})
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("command") == "quit":
            return
        try:
            say(peer.answer(request))
        except Refused as refusal:
            say({"status": "refused", "note": str(refusal)})
        except Exception as error:
            traceback.print_exc(limit=3)
            say({"status": "failed", "note": first_line(error)})
            try:
                torch.cuda.synchronize()
            except RuntimeError:
                # The device's fault stays with the process: a new one is started.
                sys.exit(1)


if __name__ == "__main__":
    main()
