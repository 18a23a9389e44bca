"""EfficientNet-Lite2 as a function of its weights: pictures -> the last map of cells, and class logits of its mean.

Tan and Le 2019 (arXiv:1905.11946), the Lite variant: ReLU6 throughout, no squeeze-and-excitation, first and last stage
not deepened. Batch normalisation is folded into the convolutions when the weights are read, in float64.
Letters: B pictures, S side in pixels, G cells a side (ceil(S / 32)), C = 1280 channels.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS, CLASSES, SIDE = 1280, 1000, 260
_STEM = 32
# Each stage: blocks, kernel, stride of its first block, channels out. The first stage does not expand, the others by 6.
_STAGES = ((1, 3, 1, 16), (3, 3, 2, 24), (3, 5, 2, 48), (4, 3, 2, 88), (4, 5, 1, 120), (5, 5, 2, 208), (1, 3, 1, 352))
_EPSILON = 1e-3  # of the batch normalisation these weights were trained with


class EfficientNetLite2(nn.Module):
    """The network in evaluation, with the normalisation folded in; never trained here."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        """`weights`: the published state dict; a KeyError or a RuntimeError says that it is another one."""
        super().__init__()
        self.stem = _fold(weights, "_conv_stem", "_bn0", stride=2)
        self.blocks = nn.ModuleList()
        width, index = _STEM, 0
        for repeats, _kernel, stride, out in _STAGES:
            for repeat in range(repeats):
                first = stride if repeat == 0 else 1
                self.blocks.append(_Block(weights, f"_blocks.{index}.", first, expand=index > 0, residual=width == out))
                width, index = out, index + 1
        self.head = _fold(weights, "_conv_head", "_bn1")
        self.classifier = nn.Linear(CHANNELS, CLASSES)
        self.classifier.load_state_dict({"weight": weights["_fc.weight"], "bias": weights["_fc.bias"]})
        self.requires_grad_(False).eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """pixels (B, 3, S, S), (value - 127) / 128 -> cells (B, C, G, G)."""
        x = functional.relu6(self.stem(pixels))
        for block in self.blocks:
            x = block(x)
        return functional.relu6(self.head(x))


class _Block(nn.Module):
    """Expand, filter each channel, project; added to its input where the shapes allow."""

    def __init__(self, weights: Mapping[str, Tensor], at: str, stride: int, *, expand: bool, residual: bool) -> None:
        super().__init__()
        self.expand = _fold(weights, f"{at}_expand_conv", f"{at}_bn0") if expand else None
        self.filter = _fold(weights, f"{at}_depthwise_conv", f"{at}_bn1", stride=stride, depthwise=True)
        self.project = _fold(weights, f"{at}_project_conv", f"{at}_bn2")
        self.residual = residual and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.expand is None else functional.relu6(self.expand(x))
        narrow: Tensor = self.project(functional.relu6(self.filter(wide)))
        return x + narrow if self.residual else narrow


class _SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow's SAME: ceil(side / stride) out, the odd pixel on the right and below."""

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = [max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in x.shape[-2:]]
        if pads[0] % 2 == 0 and pads[0] == pads[1]:  # symmetric: the convolution pads by itself
            return functional.conv2d(x, self.weight, self.bias, self.stride, pads[0] // 2, groups=self.groups)
        high, wide = pads
        x = functional.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        return functional.conv2d(x, self.weight, self.bias, self.stride, groups=self.groups)


def _fold(weights: Mapping[str, Tensor], conv: str, norm: str, stride: int = 1, depthwise: bool = False) -> nn.Conv2d:
    """One convolution that does what the named convolution and the normalisation after it do."""
    kernel = weights[f"{conv}.weight"].double()
    gain, shift = weights[f"{norm}.weight"].double(), weights[f"{norm}.bias"].double()
    mean, variance = weights[f"{norm}.running_mean"].double(), weights[f"{norm}.running_var"].double()
    gain = gain / torch.sqrt(variance + _EPSILON)
    out, inside, side, _ = kernel.shape
    folded = _SameConv(out if depthwise else inside, out, side, stride, groups=out if depthwise else 1)
    folded.weight.data.copy_(kernel * gain[:, None, None, None])
    assert folded.bias is not None
    folded.bias.data.copy_(shift - mean * gain)
    return folded
