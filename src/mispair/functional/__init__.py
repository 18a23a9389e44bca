"""Pure mathematics: tensors in, tensors or one small frozen result out.

Images are rows, captions are columns. Functions return per-pair values; the caller reduces.
No module, configuration, device, file or log appears here. The names are imported when first used.

Example:
    >>> import torch
    >>> from mispair.functional import partial_transport, rematching_loss
    >>> scores = torch.eye(3)
    >>> plan = partial_transport(1 - scores, mass=0.5, entropy=0.05).plan
    >>> by_image, by_text = rematching_loss(scores, plan)
    >>> by_image.shape, by_text.shape
    (torch.Size([3]), torch.Size([3]))
"""

from typing import TYPE_CHECKING

from mispair.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from mispair.functional.contrastive_losses import (
        active_complementary,
        complementary,
        info_nce,
        log_probabilities,
        reverse_cross_entropy,
        sigmoid_loss,
        symmetric_cross_entropy,
    )
    from mispair.functional.detection import auroc, average_precision, calibration_error, detection_metrics
    from mispair.functional.divergence import alignment_divergence, rematching_loss
    from mispair.functional.evidential_losses import dirichlet_loss, evidence, rivalry, uncertainty
    from mispair.functional.image_groups import group_correlation, group_means, shrink_to_groups
    from mispair.functional.loss_split import split_losses, trust_at_least, with_known, with_rate_between
    from mispair.functional.mixture import (
        MixtureFit,
        decide_mismatched,
        fit_beta_mixture,
        fit_gaussian_mixture,
        fit_mixture,
    )
    from mispair.functional.pair_losses import pair_loss
    from mispair.functional.ranking_losses import hinge_costs, smallest, soft_margin, triplet
    from mispair.functional.recalls import ranks, retrieval_metrics
    from mispair.functional.soft_labels import (
        anchors,
        classes_in_use,
        correspondence,
        pseudo_classification,
        refine_label,
        similarity_ratio,
        structures,
    )
    from mispair.functional.transport import partial_transport

_HOMES = {
    "MixtureFit": "mixture",
    "active_complementary": "contrastive_losses",
    "alignment_divergence": "divergence",
    "anchors": "soft_labels",
    "auroc": "detection",
    "average_precision": "detection",
    "calibration_error": "detection",
    "classes_in_use": "soft_labels",
    "complementary": "contrastive_losses",
    "correspondence": "soft_labels",
    "decide_mismatched": "mixture",
    "detection_metrics": "detection",
    "dirichlet_loss": "evidential_losses",
    "evidence": "evidential_losses",
    "fit_beta_mixture": "mixture",
    "fit_gaussian_mixture": "mixture",
    "fit_mixture": "mixture",
    "group_correlation": "image_groups",
    "group_means": "image_groups",
    "hinge_costs": "ranking_losses",
    "info_nce": "contrastive_losses",
    "log_probabilities": "contrastive_losses",
    "pair_loss": "pair_losses",
    "partial_transport": "transport",
    "pseudo_classification": "soft_labels",
    "ranks": "recalls",
    "refine_label": "soft_labels",
    "rematching_loss": "divergence",
    "retrieval_metrics": "recalls",
    "reverse_cross_entropy": "contrastive_losses",
    "rivalry": "evidential_losses",
    "shrink_to_groups": "image_groups",
    "sigmoid_loss": "contrastive_losses",
    "similarity_ratio": "soft_labels",
    "smallest": "ranking_losses",
    "soft_margin": "ranking_losses",
    "split_losses": "loss_split",
    "structures": "soft_labels",
    "symmetric_cross_entropy": "contrastive_losses",
    "triplet": "ranking_losses",
    "trust_at_least": "loss_split",
    "uncertainty": "evidential_losses",
    "with_known": "loss_split",
    "with_rate_between": "loss_split",
}

__all__ = [
    "MixtureFit",
    "active_complementary",
    "alignment_divergence",
    "anchors",
    "auroc",
    "average_precision",
    "calibration_error",
    "classes_in_use",
    "complementary",
    "correspondence",
    "decide_mismatched",
    "detection_metrics",
    "dirichlet_loss",
    "evidence",
    "fit_beta_mixture",
    "fit_gaussian_mixture",
    "fit_mixture",
    "group_correlation",
    "group_means",
    "hinge_costs",
    "info_nce",
    "log_probabilities",
    "pair_loss",
    "partial_transport",
    "pseudo_classification",
    "ranks",
    "refine_label",
    "rematching_loss",
    "retrieval_metrics",
    "reverse_cross_entropy",
    "rivalry",
    "shrink_to_groups",
    "sigmoid_loss",
    "similarity_ratio",
    "smallest",
    "soft_margin",
    "split_losses",
    "structures",
    "symmetric_cross_entropy",
    "triplet",
    "trust_at_least",
    "uncertainty",
    "with_known",
    "with_rate_between",
]


__getattr__ = lazy_exports(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
