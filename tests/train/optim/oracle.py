"""What PyTorch makes of the cases in tests/train/optim: one JSON object on stdout."""
import json, math, struct, sys
import torch

torch.set_num_threads(1)


def steps(make, count=12, size=1003):
    torch.manual_seed(7)
    first, second = torch.nn.Parameter(torch.randn(size)), torch.nn.Parameter(torch.randn(size))
    optimizer = make([{"params": [first], "weight_decay": 0.1, "lr": 0.01}, {"params": [second], "weight_decay": 0.0, "lr": 0.005}])
    start = first.tolist() + second.tolist()
    grads = []
    for k in range(count):
        for p in (first, second):
            p.grad = torch.randn(size) * 10.0 ** (k % 5 - 3)
        grads.append(first.grad.tolist() + second.grad.tolist())
        optimizer.step()
    states = {}
    for name in ("exp_avg", "exp_avg_sq", "momentum_buffer"):
        if optimizer.state[first].get(name) is not None:
            states[name] = optimizer.state[first][name].tolist() + optimizer.state[second][name].tolist()
    return {"start": start, "grads": grads, "end": first.tolist() + second.tolist(), "states": states}


def rates(factor, count=60):
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], lr=0.3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    result = []
    for _ in range(count):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return result


WARM, STEPS, FLOOR = 7, 50, 0.1


def curve(shape):
    def factor(step):
        if step < WARM: return (step + 1) / WARM
        return shape(min(1.0, (step - WARM) / (STEPS - WARM)))
    return rates(factor)


def cosine_of_torch(count=50):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=0.03)
    result = []
    for _ in range(count):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return result


def scaler(overflows, interval):
    # The kernel behind GradScaler.update() runs on GPUs only in this version: the rule of torch/cuda/amp/grad_scaler.py's documentation.
    scale, tracker, result = 65536.0, 0, []
    for overflow in overflows:
        if overflow: scale, tracker = scale * 0.5, 0
        else:
            tracker += 1
            if tracker == interval:
                grown = torch.tensor(scale * 2.0, dtype=torch.float32).item()
                scale, tracker = (grown if math.isfinite(grown) else scale), 0
        result.append(scale)
    return result


def rounding():
    g = torch.Generator().manual_seed(3)
    bits = torch.randint(-2**31, 2**31 - 1, (20000,), generator=g, dtype=torch.int64).to(torch.int32)
    near = torch.randn(20000, generator=g).mul(10.0 ** torch.randint(-9, 6, (20000,), generator=g)).to(torch.float32)
    edge = torch.tensor([0.0, -0.0, 65504.0, 65519.99, 65520.0, -65520.0, 6.1035156e-05, 5.9604645e-08, 2.9802322e-08, 2.9802326e-08,
                         float("inf"), -float("inf"), float("nan"), 3.4e38, 1e-45, 1.00390625, 1.01171875])
    values = torch.cat([bits.view(torch.float32), near, edge])
    return {"bits": values.view(torch.int32).tolist(), "bf16": values.to(torch.bfloat16).view(torch.int16).tolist(),
            "fp16": values.to(torch.float16).view(torch.int16).tolist(),
            "halves": torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16).view(torch.float16).float().view(torch.int32).tolist()}


print(json.dumps({
    "torch": torch.__version__,
    "adamw": steps(lambda groups: torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8)),
    "sgd": steps(lambda groups: torch.optim.SGD(groups, lr=1.0)),
    "sgd_momentum": steps(lambda groups: torch.optim.SGD(groups, lr=1.0, momentum=0.9, dampening=0.3)),
    "sgd_nesterov": steps(lambda groups: torch.optim.SGD(groups, lr=1.0, momentum=0.8, nesterov=True)),
    "constant": curve(lambda done: 1.0),
    "linear": curve(lambda done: FLOOR + (1 - FLOOR) * (1 - done)),
    "cosine": curve(lambda done: FLOOR + 0.5 * (1 - FLOOR) * (1 + math.cos(math.pi * done))),
    "cosine_of_torch": cosine_of_torch(),
    "scaler": scaler([c == "x" for c in "....x..x..........xx......"], 4),
    "rounding": rounding(),
}))
