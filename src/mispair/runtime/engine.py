"""Device, precision, optimizers, processes: everything between a method's loss and a changed parameter."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Literal

import torch
import torch.distributed as dist
from pydantic import Field
from torch import Tensor, nn

from mispair.devices import best_device
from mispair.distributed import gather_rows, sharing
from mispair.errors import InputError
from mispair.half_precision import bfloat16, safe_products
from mispair.protocols import RetrievalModel
from mispair.runtime.averaging import WeightAverage
from mispair.runtime.chunked_encoding import ChunkedEncoding, EncodeSide
from mispair.section import Section
from mispair.shortlist_scoring import allow_shortlists
from mispair.types import Encoded, PairBatch


class EngineConfig(Section):
    """How the arithmetic is done. Nothing here changes what is learned, but precision."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    optimizer: Literal["adam", "adamw"] = "adam"
    weight_decay: float = Field(default=0.0, ge=0.0)
    clip: float = Field(default=2.0, gt=0.0)  # largest gradient norm of a module
    # Encode so many items of a process' share at a time, and again in the backward pass: the same step in less memory.
    chunk: int | None = Field(default=None, ge=1)


class Engine:
    """One per process. Under torchrun every process holds the whole model and its share of each batch.

    `alone`: not so; this process trains something by itself, and the others need not know.
    """

    def __init__(self, config: EngineConfig, alone: bool = False) -> None:
        self.config = config
        self.device = _device(config.device)
        self.rank, self.world = (0, 1) if alone else _join(self.device)
        if config.precision == "fp16" and self.device.type != "cuda":
            raise InputError(f"engine.precision=fp16 needs a CUDA device, this is {self.device.type}; use bf16 or fp32")
        self.scaler = torch.amp.GradScaler(enabled=config.precision == "fp16")
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.modules: Mapping[str, nn.Module] = {}
        self.averages: dict[str, WeightAverage] = {}  # of the modules whose mean is asked
        self._chunked: list[ChunkedEncoding] = []  # of this step, whose encoders wait for their gradients
        self.epoch = 0  # the present one
        self.steps = 0  # optimizer steps taken, all modules together
        self.learned = self.judged = 0.0  # pairs encoded with and without gradient, of all networks; a side is half

    def adopt(
        self,
        modules: Mapping[str, nn.Module],
        rate_scale: Mapping[str, float],
        averaged: Iterable[str] = (),
        decay: float = 0.0,
    ) -> None:
        """Place the modules, give each its optimizer, and make all processes start from the same parameters.

        Of the modules named in `averaged` the running mean of their steps is kept if `decay` is not 0.
        """
        self.modules = modules
        for name, module in modules.items():
            if self.config.chunk and getattr(module, "encodes_together", False):
                raise InputError(
                    "engine.chunk needs encoders that look at one item alone; this model's do not, leave it out"
                )
            module.to(self.device)
            self._begin(name)
        self.rate_scale = dict(rate_scale)
        self.averages = {name: WeightAverage(modules[name], decay) for name in averaged if decay}

    def restart(self, name: str, fresh: nn.Module) -> None:
        """The module takes the parameters of `fresh`; its optimizer keeps the rate and forgets the rest."""
        self.modules[name].load_state_dict(fresh.state_dict())
        rates = [group["lr"] for group in self.optimizers[name].param_groups]
        self._begin(name)
        for group, rate in zip(self.optimizers[name].param_groups, rates, strict=True):
            group["lr"] = rate
        if name in self.averages:
            self.averages[name] = WeightAverage(self.modules[name], self.averages[name].decay)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Averaged modules have the mean of their steps for parameters while this lasts."""
        with ExitStack() as stack:
            for average in self.averages.values():
                stack.enter_context(average.in_place())
            yield

    def _begin(self, name: str) -> None:
        module = self.modules[name]
        if self.world > 1:
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor.data, 0)
        make = torch.optim.Adam if self.config.optimizer == "adam" else torch.optim.AdamW
        decay = self.config.weight_decay
        self.optimizers[name] = make(_groups(module), lr=0.0, weight_decay=decay, fused=self._fused)

    @property
    def _fused(self) -> bool:
        """One pass over memory per step: eight times faster on a processor. Other devices have no such kernels."""
        return self.device.type in ("cpu", "cuda")

    def set_learning_rate(self, rate: float) -> None:
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = rate * self.rate_scale.get(name, 1.0) * group["relative"]

    def minimize(self, name: str, loss: Tensor) -> None:
        """Zero, backward, average over processes, unscale, clip, step; for one module."""
        assert loss.ndim == 0, loss.shape
        module, optimizer = self.modules[name], self.optimizers[name]
        parameters = [p for p in module.parameters() if p.requires_grad]
        optimizer.zero_grad(set_to_none=True)
        with safe_products(self.device.type) if self.config.precision == "bf16" else nullcontext():
            torch.autograd.backward(self.scaler.scale(loss))
            self._chunked = [encoding for encoding in self._chunked if not encoding.backward(module, self.arithmetic)]
        if self.world > 1:
            _average([p.grad for p in parameters if p.grad is not None], self.world)
        self.scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, self.config.clip, foreach=self._fused or None)
        self.scaler.step(optimizer)
        self.scaler.update()
        # A step may go on with another forward pass: it must not find the low-precision copies of the old weights.
        torch.clear_autocast_cache()
        if name in self.averages:
            self.averages[name].update()
        self.steps += 1

    def place(self, batch: PairBatch) -> PairBatch:
        return batch.to(self.device)

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """Mixed precision for what happens inside; losses and solvers ask for float32 themselves.

        All processes are inside together, so that costly grids are shared among them; where a model has a shortlist,
        it is used.
        """
        device, wanted = self.device.type, self.config.precision
        half = torch.float16 if wanted == "fp16" else None
        mixed = bfloat16(device) if wanted == "bf16" else torch.autocast(device, dtype=half, enabled=half is not None)
        with allow_shortlists(self.epoch), sharing(self.world > 1), mixed:
            yield

    def encode(self, model: RetrievalModel, batch: PairBatch) -> tuple[Encoded, Encoded]:
        """Both sides of the whole batch. Each process encodes its share; gradients flow back to where it came from."""
        return self.encode_images(model, batch), self.encode_texts(model, batch)

    def encode_images(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        self._count(batch)
        images = self._encode(model, model.encode_images, batch.images, batch.image_mask)
        return images if self.world == 1 else _gather(images)

    def encode_texts(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        self._count(batch)
        texts = self._encode(model, model.encode_texts, batch.texts, batch.text_mask)
        return texts if self.world == 1 else _gather(texts)

    def _encode(self, model: RetrievalModel, encoder: EncodeSide, values: Tensor, mask: Tensor) -> Encoded:
        chunk = self.config.chunk
        if chunk is None or len(values) <= chunk:
            return encoder(values, mask)
        encoding = ChunkedEncoding(model, encoder, values, mask, chunk)
        if torch.is_grad_enabled():
            self._chunked.append(encoding)
        return encoding.encoded

    def end_step(self) -> None:
        """What was encoded in chunks and nobody asked a gradient of is forgotten."""
        self._chunked.clear()

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
            "averages": {name: average.state() for name, average in self.averages.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.scaler.load_state_dict(state["scaler"])
        self.steps, self.learned, self.judged = state["steps"], state["learned"], state["judged"]
        for name, average in self.averages.items():
            average.restore(state["averages"][name])

    @property
    def leads(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.world > 1:
            dist.barrier()


def leads() -> bool:
    """Whether this process writes and prints; known before any engine is made."""
    return os.environ.get("RANK", "0") == "0"


def _groups(module: nn.Module) -> list[dict[str, Any]]:
    """The parameters that learn, by how fast they do so relative to the run; a module says it by its `rates()`."""
    named = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    rates = getattr(module, "rates", None)
    said = rates() if callable(rates) else {}
    relative = {name: float(said.get(name, 1.0)) for name in named}
    return [
        {"params": [named[name] for name in named if relative[name] == rate], "relative": rate}
        for rate in sorted(set(relative.values()), reverse=True)
    ]


def _device(wanted: str) -> torch.device:
    wanted = best_device() if wanted == "auto" else wanted
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
        atexit.register(_leave)
    return dist.get_rank(), dist.get_world_size()


def _leave() -> None:
    """End the group's threads before the interpreter goes: one that still wants it then aborts the process."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _average(gradients: list[Tensor], world: int) -> None:
    """One message for all gradients instead of one each."""
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= world
    for gradient, part in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def _gather(local: Encoded) -> Encoded:
    """The shares of all processes in order of rank; the batch was padded alike in all of them."""
    mask = local.mask.to(torch.uint8).contiguous()
    masks = [torch.empty_like(mask) for _ in range(dist.get_world_size())]
    dist.all_gather(masks, mask)
    return Encoded(gather_rows(local.values.contiguous()), torch.cat(masks).bool())
