"""Scoring shared by SGR and SAF: similarity vectors of all pairs, group by group, then the model's own head.

The slow version that proves it: `similarity_nodes` and `scores` in tests/model_oracles.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from mispair.distributed import SharedColumns, share_columns
from mispair.errors import InputError
from mispair.models.base import ModelConfig, check_encoded
from mispair.models.branches import Sequencer
from mispair.models.candidate_cells import candidate_cells, completed, worth_it
from mispair.models.kernels.autograd import differentiable
from mispair.models.kernels.caption_groups import Group, by_length, in_order
from mispair.models.kernels.similarity_vectors import GridInputs, SimilarityVectors, vectors
from mispair.models.kernels.unit_length import l2
from mispair.models.layers import masked_mean, xavier
from mispair.models.region_word import RegionWordBackbone
from mispair.models.selfattention import ImageAttention, TextAttention
from mispair.models.sizes import InputSizes
from mispair.models.stand_in import StandIn
from mispair.shortlist_scoring import epoch_of_shortlists
from mispair.types import Encoded

STEEP = 5.0  # of the logit of a cosine: its sigmoid then spans about what the model's own scores do
Nodes = Iterator[tuple[Tensor | None, Tensor]]  # groups of word mask and nodes


class FineGrainedConfig(ModelConfig):
    """What SGR and SAF share; the defaults are the published sizes."""

    embed: PositiveInt = 1024
    sim: PositiveInt = 256
    word_dim: PositiveInt = 300
    text: Sequencer = "gru"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.4
    smooth: PositiveFloat = 9.0
    stand_in: PositiveInt | None = 256  # width of the cosine that learns along for two-stage scoring; None: none


class FineGrained(RegionWordBackbone):
    """Encoders, globals and similarity vectors; a subclass turns vectors into logits in `_score`."""

    def __init__(self, config: FineGrainedConfig, sizes: InputSizes) -> None:
        super().__init__(
            config,
            sizes,
            embed=config.embed,
            word_dim=config.word_dim,
            sequencer=config.text,
            dropout=config.dropout,
        )
        self.smooth = config.smooth
        self.image_attention = ImageAttention(config.embed, sizes.regions, config.dropout)
        self.text_attention = TextAttention(config.embed, config.dropout)
        self.local_map = xavier(config.embed, config.sim)
        self.global_map = xavier(config.embed, config.sim)
        self.stand_in = StandIn(2 * config.embed, config.stand_in) if config.stand_in else None
        self._shortlist: int | None = None  # candidates per query while learning; None: every cell
        self._shortlist_after = 0  # epochs in which means are compared instead

    def pool_images(self, images: Encoded) -> Tensor:
        """The stand-in's vector, or the self-attended global one when there is no stand-in."""
        return self._image_global(images) if self.stand_in is None else self.stand_in.images(self.pooled_images(images))

    def pool_texts(self, texts: Encoded) -> Tensor:
        """The stand-in's vector, or the self-attended global one when there is no stand-in."""
        return self._text_global(texts) if self.stand_in is None else self.stand_in.texts(self.pooled_texts(texts))

    def pooled_images(self, images: Encoded) -> Tensor:
        """What the stand-in reads: the mean region and the self-attended vector, (N, 2D)."""
        return torch.cat([masked_mean(images.values, images.mask), self._image_global(images)], -1)

    def pooled_texts(self, texts: Encoded) -> Tensor:
        """What the stand-in reads: the mean word and the self-attended vector, (N, 2D)."""
        return torch.cat([masked_mean(texts.values, texts.mask), self._text_global(texts)], -1)

    def _image_global(self, images: Encoded) -> Tensor:
        """The self-attended vector of each image, (N, D)."""
        if self.training and len(images) < 2:
            raise InputError("training needs at least 2 images in a batch: their global vectors are batch-normalised")
        pooled: Tensor = self.image_attention(images.values, images.mask)
        return pooled

    def _text_global(self, texts: Encoded) -> Tensor:
        pooled: Tensor = self.text_attention(texts.values, texts.mask)
        return pooled

    def link(self, logits: Tensor) -> Tensor:
        """Sigmoid: scores in (0, 1)."""
        return logits.sigmoid()

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        """Raw logits of every image against every text, (n, m)."""
        check_encoded(images, texts, self.embed)
        epoch = epoch_of_shortlists()
        if epoch is not None and self._shortlist:
            if epoch < self._shortlist_after:
                return self._by_means(images, texts)
            if worth_it(len(images), len(texts), self._shortlist):
                return self._shortlisted(images, texts, self._shortlist)
        shared = share_columns(texts.mask.sum(1))  # texts, not images: those are normalised over the whole batch
        own = texts if shared is None else texts.take(shared.mine)
        pairs = PreparedBatch(self, images, own)
        plan = by_length(own.mask, words_per_group(own.mask.device))
        blocks = pairs.by_group(plan)
        whole = torch.is_grad_enabled() or self._coupled()
        if sparse and torch.is_grad_enabled() and not self._coupled() and all(group.mask is None for group in plan):
            logits = in_order([self._score_again(pairs, *block) for block in blocks], plan, dim=1)
        else:
            stripes = []
            for rows in [None] if whole else _stripes(len(images)):
                groups = ((group.mask, pairs.grid(rows, *block)) for group, block in zip(plan, blocks, strict=True))
                stripes.append(in_order(self._score(groups, plan, shared), plan, dim=1))
            logits = torch.cat(stripes) if len(stripes) > 1 else stripes[0]
        logits = logits if shared is None else shared.whole(logits, 1)
        if self.stand_in is not None and self.training and torch.is_grad_enabled():
            text_global = pairs.text_global if shared is None else shared.whole(pairs.text_global.detach())
            logits = self.stand_in.follow(logits, self._cosines(images, texts, pairs.image_global, text_global))
        return logits

    def _cosines(self, images: Encoded, texts: Encoded, image_global: Tensor, text_global: Tensor) -> Tensor:
        """What the stand-in makes of the encoded items, (n, m)."""
        assert self.stand_in is not None
        means = masked_mean(images.values, images.mask), masked_mean(texts.values, texts.mask)
        whole = (x.to(mean.dtype) for x, mean in zip((image_global, text_global), means, strict=True))
        return self.stand_in.cosines(*(torch.cat(side, -1) for side in zip(means, whole, strict=True)))

    def _by_means(self, images: Encoded, texts: Encoded) -> Tensor:
        """Logits (n, m) of the mean region with the mean word: the encoders learn, and the stand-in whom to name."""
        assert self.stand_in is not None
        a, b = (l2(masked_mean(side.values, side.mask)) for side in (images, texts))
        logits = STEEP * (a @ b.T)
        if not (self.training and torch.is_grad_enabled()):
            return logits
        cosines = self.stand_in.cosines(self.pooled_images(images), self.pooled_texts(texts))
        return self.stand_in.follow(logits, cosines)

    def _shortlisted(self, images: Encoded, texts: Encoded, count: int) -> Tensor:
        """Raw logits (n, m): of `count` candidates per image and per text by the full model, estimates of the rest."""
        assert self.stand_in is not None
        pairs = PreparedBatch(self, images, texts)
        cosines = self._cosines(images, texts, pairs.image_global, pairs.text_global)
        rows, cols = candidate_cells(cosines.detach(), count)
        logits, scored = completed(cosines.detach(), rows, cols, self._listed(pairs, rows, cols))
        teaches = self.training and torch.is_grad_enabled()
        return self.stand_in.follow(logits, cosines, scored) if teaches else logits

    def paired(self, images: Encoded, texts: Encoded, rows: Tensor, cols: Tensor) -> Tensor:
        """Raw logits of the listed cells only, (k,): the same cells of `similarity`, in any mode."""
        check_encoded(images, texts, self.embed)
        epoch = epoch_of_shortlists()
        by_means = epoch is not None and self._shortlist is not None and epoch < self._shortlist_after
        if by_means or self._coupled():
            return self.similarity(images, texts)[rows, cols]
        pairs = PreparedBatch(self, images, texts)
        if not torch.is_grad_enabled() and rows.device.type == "cpu" and len(rows) >= MANY * len(images):
            return self._by_image(pairs, rows, cols)
        return self._listed(pairs, rows, cols)

    def _listed(self, pairs: PreparedBatch, rows: Tensor, cols: Tensor) -> Tensor:
        """Logits (c,) of listed cells, by length of their texts."""
        shared = share_columns(pairs.word_mask.sum(1)[cols])
        if shared is not None:
            rows, cols = rows[shared.mine], cols[shared.mine]
        logits = []
        plan = by_length(pairs.word_mask[cols], 1 << 11)
        for group in plan:
            nodes = pairs.listed(rows[group.columns], cols[group.columns], group)
            mask = None if group.mask is None else group.mask[:, None]
            logits.append(self._score(iter([(mask, nodes)]))[0][:, 0])
        cells = in_order(logits, plan, dim=0) if logits else pairs.regions.new_empty(0)
        return cells if shared is None else shared.whole(cells)

    def _by_image(self, pairs: PreparedBatch, rows: Tensor, cols: Tensor) -> Tensor:
        """Many texts of one image at a time: its regions are read once, not once per text."""
        logits = pairs.regions.new_empty(len(rows))
        lengths = pairs.word_mask.sum(1)[cols]
        order = torch.argsort(rows * (1 << 20) + lengths, stable=True)
        counts = torch.bincount(rows, minlength=len(pairs.regions)).tolist()
        for image, mine in enumerate(torch.split(order, counts)):
            if not len(mine):
                continue
            step = max(1, (1 << 11) // int(lengths[mine[-1]]))
            for part in torch.split(mine, step):
                length = int(lengths[part[-1]])
                mask = pairs.word_mask[cols[part], :length]
                group = Group(cols[part], length, None if int(lengths[part[0]]) == length else mask)
                nodes = pairs.grid(slice(image, image + 1), *pairs.by_group([group])[0])
                logits[part] = self._score(iter([(group.mask, nodes)]))[0][0]
        return logits

    def _score(
        self, groups: Nodes, plan: list[Group] | None = None, shared: SharedColumns | None = None
    ) -> list[Tensor]:
        """Logits (n, k) of each group of nodes (n, k, L+1, S) with its word mask, broadcastable to (n, k, L).

        The texts of the groups are the columns `plan` names, of those that are `shared` out to this process.
        """
        raise NotImplementedError

    def _score_again(self, pairs: PreparedBatch, words: Tensor, text_global: Tensor) -> Tensor:
        """Logits (n, k) of a group for a sparse gradient; a model that can computes the cells it touches again."""
        return self._score(iter([(None, pairs.grid(None, words, text_global))]))[0]

    def _coupled(self) -> bool:
        """Whether a cell's logit depends on the other cells, now."""
        return False


class PreparedBatch:
    """Everything computed once per call: globals, Gram matrices, and the precision of the pair-level work."""

    def __init__(self, model: FineGrained, images: Encoded, texts: Encoded) -> None:
        kind = images.values.device.type
        half = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else images.values.dtype
        maps = (model.local_map, model.global_map)
        self.smooth = model.smooth
        self.maps = [p.to(half) for m in maps for p in (m.weight, m.bias)]
        self.image_global = model._image_global(images).to(half)
        self.text_global = model._text_global(texts).to(half)
        self.regions = images.values.to(half)
        self.words = (texts.values * texts.mask[..., None]).to(half)
        self.word_mask = texts.mask
        self.gram = torch.bmm(self.regions, self.regions.mT)
        full = kind == "cpu" and bool(images.mask.all())
        self.region_mask = None if full else images.mask

    def by_group(self, plan: list[Group]) -> list[tuple[Tensor, Tensor]]:
        """Words (k, L, D) and globals (k, D) of each group.

        One gather and one split: indexing per group would have autograd fill a whole zero batch for each.
        """
        order, sizes = torch.cat([group.columns for group in plan]), [len(group.columns) for group in plan]
        words = torch.split(self.words[order], sizes)
        text_globals = torch.split(self.text_global[order], sizes)
        return [(w[:, : group.length].contiguous(), g) for w, g, group in zip(words, text_globals, plan, strict=True)]

    def grid(self, rows: slice | None, words: Tensor, text_global: Tensor) -> Tensor:
        """Similarity vectors of images `rows` (None: all) against a group's texts, (n, k, L+1, S)."""
        whole = GridInputs(self.regions, self.gram, words[None], self.image_global, text_global[None], self.region_mask)
        return self._apply(whole if rows is None else whole.images(rows))

    def listed(self, rows: Tensor, cols: Tensor, group: Group) -> Tensor:
        """Similarity vectors of listed pairs of one length, (c, 1, L+1, S)."""
        words = self.words[:, : group.length].index_select(0, cols)[:, None]
        mask = None if self.region_mask is None else self.region_mask[rows]
        text_global = self.text_global.index_select(0, cols)[:, None]
        # index_select: the backward of an index is many times slower.
        images = (x.index_select(0, rows) for x in (self.regions, self.gram, self.image_global))
        regions, gram, image_global = images
        return self._apply(GridInputs(regions, gram, words, image_global, text_global, mask))

    def _apply(self, inputs: GridInputs) -> Tensor:
        if torch.is_grad_enabled():
            return differentiable(SimilarityVectors, *inputs.tensors(), *self.maps, self.smooth)
        with torch.autocast(self.regions.device.type, enabled=False):
            return vectors(inputs, self.maps, self.smooth)[0]


MANY = 128  # cells per image from which a list of pairs is scored image by image: fewer make blocks too small
STRIPE = 128  # images scored together when nothing must be kept


def words_per_group(device: torch.device) -> int:
    """Words scored together: enough for large products, few enough for the cache of a CPU."""
    return 256 if device.type == "cpu" else 1024


def node_mask(mask: Tensor) -> Tensor:
    """The word mask (..., L) with the global node in front, (..., L+1)."""
    return torch.cat([torch.ones_like(mask[..., :1]), mask], -1)


def _stripes(count: int) -> list[slice]:
    return [slice(start, start + STRIPE) for start in range(0, count, STRIPE)]
