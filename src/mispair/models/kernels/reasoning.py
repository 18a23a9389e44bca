"""Graph reasoning over the similarity vectors of every pair, forwards and backwards (SGRAF, section 3.3).

One step is X <- ReLU(E X W_g' + b_g), E = softmax_row((X W_q' + b_q)(X W_k' + b_k)'). Three savings, all exact:
the key bias shifts a whole row and drops out; the query and key maps merge into M = W_q' W_k and the row b_q W_k,
so a step is a product with M and one with W_g; the last step is read at node 0 only, so only node 0 is computed.

The slow version that proves it: `sgr_head` in tests/model_oracles.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from mispair.models.kernels.similarity_vectors import block_rows, live_cells, pieces, running_sum

Step = tuple[Tensor, Tensor, Tensor, Tensor]  # M (S, S), b_q W_k (S,), W_g (S, S), b_g (S,)


def reason(
    nodes: Tensor, mask: Tensor | None, steps: list[Step], w_out: Tensor, b_out: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """nodes (c, N, S), mask (c, N) -> logits (c,), and what the backward wants: queries, edges, output by step."""
    kept: list[Tensor] = []
    for merged, query_row, w_graph, b_graph in steps[:-1]:
        flat = nodes.view(-1, nodes.shape[-1])
        queries = torch.addmm(query_row, flat, merged).view(nodes.shape)
        edges = _softmax(_against(queries, nodes), None if mask is None else mask[:, None])
        # The edges of a node sum to 1, so the bias may join before they mix.
        values = torch.addmm(b_graph, flat, w_graph.T).view(nodes.shape)
        nodes = torch.bmm(edges, values).relu_()
        kept += [queries, edges, nodes]
    _, _, top, _ = _last(nodes, mask, steps[-1])
    return top @ w_out + b_out, kept


def _against(x: Tensor, y: Tensor) -> Tensor:
    """x y' of every cell: (c, N, S), (c, N, S) -> (c, N, N).

    On a CPU small products of odd width run at a third of their speed, so y gets rows of zeros for company.
    """
    odd = y.shape[1] % 4 if x.device.type == "cpu" else 0
    return torch.bmm(x, pad(y, (0, 0, 0, 4 - odd)).mT)[..., : y.shape[1]] if odd else torch.bmm(x, y.mT)


def _softmax(logits: Tensor, mask: Tensor | None) -> Tensor:
    return (logits if mask is None else logits.masked_fill(~mask, float("-inf"))).softmax(-1)


def _last(nodes: Tensor, mask: Tensor | None, step: Step) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The last step at node 0: weights (c, N), query (c, S), output (c, S), mixed input (c, S)."""
    merged, query_row, w_graph, b_graph = step
    query = torch.addmm(query_row, nodes[:, 0], merged)
    weights = _softmax(_dot(query, nodes), mask)
    mixed = torch.bmm(weights[:, None], nodes)[:, 0]
    return weights, query, torch.addmm(b_graph, mixed, w_graph.T).relu_(), mixed


def _dot(row: Tensor, nodes: Tensor) -> Tensor:
    """One vector per cell against its nodes: (c, S), (c, N, S) -> (c, N). Rows times a matrix: the other way round a
    CPU takes ten times as long."""
    return torch.bmm(row[:, None], nodes.mT)[:, 0]


def _last_backward(
    nodes: Tensor, mask: Tensor | None, step: Step, grad: Tensor, w_out: Tensor, sums: list[Tensor]
) -> Tensor:
    """grad (c,) of the logits -> gradient of the last step's input (c, N, S); adds to the step's `sums`."""
    merged, _, w_graph, _ = step
    weights, query, top, mixed = _last(nodes, mask, step)
    sums[-2] += grad @ top
    sums[-1] += grad.sum()
    d_top = (grad[:, None] * w_out).mul_(top > 0)
    d_mixed = d_top @ w_graph
    d_weights = _dot(d_mixed, nodes)
    d_logits = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
    d_query = torch.bmm(d_logits[:, None], nodes)[:, 0]
    # weights x d_mixed + d_logits x query, as one product of rank two
    d_nodes = torch.bmm(torch.stack([weights, d_logits], -1), torch.stack([d_mixed, query], 1))
    d_nodes[:, 0] += d_query @ merged.T
    _add(sums[-6:-2], nodes[:, 0].T @ d_query, d_query.sum(0), d_top.T @ mixed, d_top.sum(0))
    return d_nodes


def _step_backward(nodes: Tensor, kept: list[Tensor], step: Step, grad: Tensor, sums: list[Tensor]) -> Tensor:
    """Gradient of an inner step's output (c, N, S) -> of its input; adds to `sums`."""
    merged, _, w_graph, _ = step
    queries, edges, out = kept
    c, n, s = nodes.shape
    grad = torch.ops.aten.threshold_backward(grad, out, 0)  # one pass; a product with a mask takes six times as long
    flat = grad.view(-1, s)
    d_mixed = (flat @ w_graph).view(c, n, s)  # of E X
    d_edges = _against(d_mixed, nodes)
    d_logits = edges * (d_edges - (edges * d_edges).sum(-1, keepdim=True))
    mixed, d_query = torch.bmm(edges, nodes).view(-1, s), torch.bmm(d_logits, nodes).view(-1, s)
    # dX = dL X M' on the query side + E' d(EX) + dL' (X M + row) on the key side
    d_nodes = (d_query @ merged.T).view(c, n, s)
    d_nodes.baddbmm_(edges.mT, d_mixed).baddbmm_(d_logits.mT, queries)
    _add(sums, nodes.view(-1, s).T @ d_query, d_query.sum(0), flat.T @ mixed, flat.sum(0))
    return d_nodes


def _add(sums: list[Tensor], *parts: Tensor) -> None:
    for total, part in zip(sums, parts, strict=True):
        total += part


class GraphReasoning(torch.autograd.Function):
    """`reason` over a group (n, k, N, S) -> logits (n, k); a backward that skips cells without gradient.

    `keep=False` stores only the input and recomputes the steps when the gradient comes.
    """

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, mask: Tensor | None, keep: bool, *weights: Tensor) -> Tensor:
        steps, (w_out, b_out) = _unflatten(weights), weights[-2:]
        n, k, count, s = nodes.shape
        cells = None if mask is None else mask.expand(n, k, count).reshape(-1, count)
        flat = nodes.view(-1, count, s)
        logits = flat.new_empty(n * k)
        kept: list[Tensor] = []
        with torch.autocast(nodes.device.type, enabled=False):
            for part in parts(flat):
                own = None if cells is None else cells[part]
                logits[part], state = reason(flat[part], own, steps, w_out, b_out)
                kept += state if keep else []
        ctx.cells = cells
        ctx.save_for_backward(nodes, *weights, *kept)
        return logits.view(n, k)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.needs_input_grad) - 3
        nodes, weights, kept = ctx.saved_tensors[0], ctx.saved_tensors[1 : 1 + count], ctx.saved_tensors[1 + count :]
        steps, (w_out, b_out) = _unflatten(weights), weights[-2:]
        sums = [running_sum(w) for w in weights]
        flat, d_logits = nodes.view(-1, *nodes.shape[2:]), grad.reshape(-1)
        live = live_cells(grad)
        chosen = None if live is None else live[0] * grad.shape[1] + live[1]
        d_nodes = torch.zeros_like(flat) if chosen is not None else torch.empty_like(flat)
        states = 3 * (len(steps) - 1)
        work: Sequence[slice | Tensor] = parts(flat) if chosen is None else pieces(chosen, _cells_per_part(flat))
        for at, part in enumerate(work):
            x, mask = flat[part], None if ctx.cells is None else ctx.cells[part]
            if chosen is None and kept:
                state = list(kept[at * states : (at + 1) * states])
            else:
                state = reason(x, mask, steps, w_out, b_out)[1]
            d_nodes[part] = _reason_backward(x, mask, steps, w_out, state, d_logits[part], sums)
        return d_nodes.view(nodes.shape), None, None, *(s.to(w.dtype) for s, w in zip(sums, weights, strict=True))


def _reason_backward(
    nodes: Tensor,
    mask: Tensor | None,
    steps: list[Step],
    w_out: Tensor,
    state: list[Tensor],
    grad: Tensor,
    sums: list[Tensor],
) -> Tensor:
    outs = [nodes, *state[2::3]]
    d_nodes = _last_backward(outs[-1], mask, steps[-1], grad, w_out, sums)
    for at in reversed(range(len(steps) - 1)):
        own = sums[4 * at : 4 * at + 4]
        d_nodes = _step_backward(outs[at], state[3 * at : 3 * at + 3], steps[at], d_nodes, own)
    return d_nodes


def _unflatten(weights: tuple[Tensor, ...]) -> list[Step]:
    return [(weights[i], weights[i + 1], weights[i + 2], weights[i + 3]) for i in range(0, len(weights) - 2, 4)]


def _cells_per_part(flat: Tensor) -> int:
    return max(1, block_rows(flat.device, 4 * flat.shape[2]) // flat.shape[1])  # four arrays at a time


def parts(flat: Tensor) -> list[slice]:
    """Cut (c, N, S) into stretches of cells that stay in the cache."""
    step = _cells_per_part(flat)
    return [slice(start, min(start + step, len(flat))) for start in range(0, len(flat), step)]
