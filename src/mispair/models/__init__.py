"""Backbones: from features of two sides to raw logits of every pair; hand-written autograd is in `kernels`."""

from mispair.models.base import Backbone, ModelConfig
from mispair.models.one_vector import OneVectorBackbone
from mispair.models.registry import MODELS, build_model, encodes_one_vector, model_names, model_preset, register_model
from mispair.models.sizes import InputSizes
from mispair.models.stand_in import fit_stand_in

__all__ = [
    "MODELS",
    "Backbone",
    "InputSizes",
    "ModelConfig",
    "OneVectorBackbone",
    "build_model",
    "encodes_one_vector",
    "fit_stand_in",
    "model_names",
    "model_preset",
    "register_model",
]
