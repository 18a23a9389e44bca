"""Device, precision, optimizers, processes: everything between a method's loss and a changed parameter."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
import torch.distributed as dist
from pydantic import Field
from torch import Tensor, nn

from mispair.errors import InputError
from mispair.protocols import RetrievalModel
from mispair.section import Section
from mispair.types import Encoded, PairBatch


class EngineConfig(Section):
    """How the arithmetic is done. Nothing here changes what is learned, but precision."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    optimizer: Literal["adam", "adamw"] = "adam"
    weight_decay: float = Field(default=0.0, ge=0.0)
    clip: float = Field(default=2.0, gt=0.0)  # largest gradient norm of a module


class Engine:
    """One per process. Under torchrun every process holds the whole model and its share of each batch."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.device = _device(config.device)
        self.rank, self.world = _join(self.device)
        if config.precision == "fp16" and self.device.type != "cuda":
            raise InputError(f"engine.precision=fp16 needs a CUDA device, this is {self.device.type}; use bf16 or fp32")
        self.scaler = torch.amp.GradScaler(enabled=config.precision == "fp16")
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.modules: Mapping[str, nn.Module] = {}
        self.steps = 0  # optimizer steps taken, all modules together
        self.learned = self.judged = 0.0  # pairs encoded with and without gradient, of all networks; a side is half

    def adopt(self, modules: Mapping[str, nn.Module], rate_scale: Mapping[str, float]) -> None:
        """Place the modules, give each its optimizer, and make all processes start from the same parameters."""
        self.modules = modules
        for name, module in modules.items():
            module.to(self.device)
            self._begin(name)
        self.rate_scale = dict(rate_scale)

    def restart(self, name: str, fresh: nn.Module) -> None:
        """The module takes the parameters of `fresh`; its optimizer keeps the rate and forgets the rest."""
        self.modules[name].load_state_dict(fresh.state_dict())
        rate = self.optimizers[name].param_groups[0]["lr"]
        self._begin(name, rate)

    def _begin(self, name: str, rate: float = 0.0) -> None:
        module = self.modules[name]
        if self.world > 1:
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor.data, 0)
        make = torch.optim.Adam if self.config.optimizer == "adam" else torch.optim.AdamW
        fused = self.device.type in ("cpu", "cuda")  # one pass over memory per step: eight times faster on a processor
        self.optimizers[name] = make(module.parameters(), lr=rate, weight_decay=self.config.weight_decay, fused=fused)

    def set_learning_rate(self, rate: float) -> None:
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = rate * self.rate_scale.get(name, 1.0)

    def minimize(self, name: str, loss: Tensor) -> None:
        """Zero, backward, average over processes, unscale, clip, step; for one module."""
        assert loss.ndim == 0, loss.shape
        module, optimizer = self.modules[name], self.optimizers[name]
        parameters = [p for p in module.parameters() if p.requires_grad]
        optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        if self.world > 1:
            _average([p.grad for p in parameters if p.grad is not None], self.world)
        self.scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, self.config.clip, foreach=True)
        self.scaler.step(optimizer)
        self.scaler.update()
        # A step may go on with another forward pass: it must not find the low-precision copies of the old weights.
        torch.clear_autocast_cache()
        self.steps += 1

    def place(self, batch: PairBatch) -> PairBatch:
        return batch.to(self.device)

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """Mixed precision for what happens inside; losses and solvers ask for float32 themselves."""
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.config.precision)
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            yield

    def encode(self, model: RetrievalModel, batch: PairBatch) -> tuple[Encoded, Encoded]:
        """Both sides of the whole batch. Each process encodes its share; gradients flow back to where it came from."""
        return self.encode_images(model, batch), self.encode_texts(model, batch)

    def encode_images(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        self._count(batch)
        images = model.encode_images(batch.images, batch.image_mask)
        return images if self.world == 1 else _gather(images)

    def encode_texts(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        self._count(batch)
        texts = model.encode_texts(batch.texts, batch.text_mask)
        return texts if self.world == 1 else _gather(texts)

    def _count(self, batch: PairBatch) -> None:
        if torch.is_grad_enabled():
            self.learned += len(batch) / 2
        else:
            self.judged += len(batch) / 2

    def state(self) -> dict[str, Any]:
        return {
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "scaler": self.scaler.state_dict(),
            "steps": self.steps,
            "learned": self.learned,
            "judged": self.judged,
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.scaler.load_state_dict(state["scaler"])
        self.steps, self.learned, self.judged = state["steps"], state["learned"], state["judged"]

    @property
    def leads(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all processes are here."""
        if self.world > 1:
            dist.barrier()


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if not present[wanted]:
        raise InputError(f"engine.device={wanted} is not available here; use auto or cpu (mispair doctor tells more)")
    if wanted == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device(wanted)


def _join(device: torch.device) -> tuple[int, int]:
    """(rank, world) under torchrun, (0, 1) alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return dist.get_rank(), dist.get_world_size()


def _average(gradients: list[Tensor], world: int) -> None:
    """One message for all gradients instead of one each."""
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= world
    for gradient, part in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def _gather(local: Encoded) -> Encoded:
    """The shares of all processes in order of rank, padded to the longest.

    The backward pass adds what every process asks of a share. All of them compute the same loss, so a parameter
    used before the gathering gets `world` times its part of the gradient from one process and nothing from the
    others; one used after it gets the whole gradient from each. Averaging is right for both.
    """
    longest = torch.tensor([local.values.shape[1]], device=local.values.device)
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    extra = int(longest) - local.values.shape[1]
    values = nn.functional.pad(local.values, (0, 0, 0, extra)).contiguous()
    mask = nn.functional.pad(local.mask, (0, extra)).contiguous()
    masks = [torch.empty_like(mask, dtype=torch.uint8) for _ in range(dist.get_world_size())]
    dist.all_gather(masks, mask.to(torch.uint8))
    return Encoded(_GatherRows.apply(values), torch.cat(masks).bool())  # type: ignore[no-untyped-call]


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        ctx.rows = local.shape[0]
        parts = [torch.empty_like(local) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, local)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        start = dist.get_rank() * ctx.rows
        return gradient[start : start + ctx.rows]
