"""The order is drawn, mixed as it says, the same after a restart, and its random part stays a uniform sample."""

from collections import Counter

import numpy as np

from mispair.reviewing.decisions import Decision
from mispair.reviewing.queue import ReviewQueue

N = 200
P = np.linspace(0, 1, N)
LOOK = np.argsort(np.argsort(-np.minimum(P, 1 - P), kind="stable")) + 1


def queue():
    return ReviewQueue(P, LOOK, seed=3)


def decided(item, reviewer, number):
    return Decision(
        number=number, pair=item.pair, answer="right", reviewer=reviewer, time="", origin=item.origin,
        control=item.control,
    )  # fmt: skip


def test_of_ten_places_one_is_a_control_four_random_five_useful():
    q = queue()
    origins = Counter(q.item("ann", k).origin for k in range(100))
    assert origins == {"control": 10, "random": 40, "useful": 50}


def test_no_place_in_ten_tells_what_is_shown_there():
    origins = {}
    for name in ("ann", "bob"):
        alone = queue()
        origins[name] = [alone.item(name, k).origin for k in range(100)]
    tens = [shown[start : start + 10] for shown in origins.values() for start in range(0, 100, 10)]
    assert all(Counter(ten) == {"control": 1, "random": 4, "useful": 5} for ten in tens)
    assert len({ten.index("control") for ten in tens}) >= 6
    assert origins["ann"] != origins["bob"]


def test_a_place_always_shows_the_same_pair():
    q = queue()
    first = [q.item("ann", k) for k in range(30)]
    assert [q.item("ann", k) for k in range(30)] == first
    assert [queue().item("ann", k) for k in range(1)] == first[:1]


def test_a_restart_goes_on_with_the_pairs_that_would_have_come():
    q = queue()
    whole = [q.item("ann", k) for k in range(40)]
    again = queue()
    again.take_up([decided(item, "ann", k + 1) for k, item in enumerate(whole[:17])])
    assert [again.item("ann", k) for k in range(17, 40)] == whole[17:]


def test_useful_pairs_come_in_the_order_of_their_use():
    q = queue()
    useful = [item.pair for item in (q.item("ann", k) for k in range(60)) if item.origin == "useful"]
    assert (np.diff(LOOK[useful]) > 0).all()


def test_nobody_sees_a_pair_twice_and_every_pair_comes():
    q = queue()
    items = []
    while (item := q.item("ann", len(items))) is not None:
        items.append(item)
    own = [item.pair for item in items if item.control is None]
    assert sorted(own) == list(range(N))


def test_the_random_part_is_a_uniform_sample_whatever_else_was_shown():
    """A pair that was shown as useful first still counts at its place in the drawn order."""
    q = queue()
    items = [q.item("ann", k) for k in range(60)]
    answered = {item.pair for item in items if item.control is None}
    sample = q.random_sample(answered)
    order = q.random_sample(set(range(N)))
    assert sample == order[: len(sample)]
    assert order[len(sample)] not in answered
    assert {item.pair for item in items if item.origin == "random"} <= set(sample)


def test_two_reviewers_share_some_random_pairs_and_no_others():
    q = queue()
    seen = {name: [q.item(name, k) for k in range(100)] for name in ("ann", "bob")}
    pairs = {name: {item.pair for item in items if item.control is None} for name, items in seen.items()}
    assert len(pairs["ann"] & pairs["bob"]) == 20


def test_controls_are_sure_or_repaired_with_another_caption():
    q = queue()
    controls = [item for item in (q.item("ann", k) for k in range(300)) if item is not None and item.control]
    assert {item.control for item in controls} == {"sure", "re-paired"}
    for item in controls:
        if item.control == "sure":
            assert P[item.pair] < 0.05
        else:
            assert item.caption_of not in (None, item.pair)


def test_a_control_put_together_at_random_shows_another_caption_of_another_image():
    """Most of these pairs say "card": beside one of them the caption of another is no wrong pair."""
    captions = ["card" if k % 10 else f"thing {k}" for k in range(N)]
    images = [k // 2 for k in range(N)]
    q = ReviewQueue(P, LOOK, seed=3, captions=captions, images=images)
    controls = [item for item in (q.item("ann", k) for k in range(210)) if item is not None and item.control]
    made = [item for item in controls if item.control == "re-paired"]
    assert len(made) >= 5
    assert all(captions[item.pair] != captions[item.caption_of] for item in made)
    assert all(images[item.pair] != images[item.caption_of] for item in made)


def test_where_no_caption_differs_no_control_is_put_together():
    q = ReviewQueue(np.full(N, 0.5), LOOK, seed=3, captions=["card"] * N)
    assert not any(q.item("ann", k).control for k in range(60))


def test_a_model_that_cannot_tell_is_sure_of_no_pair():
    """Its lowest probabilities are guesses, and a reviewer who sees better would be charged with an error."""
    q = ReviewQueue(P, LOOK, seed=3, trusted=False)
    controls = [item for item in (q.item("ann", k) for k in range(200)) if item.control]
    assert {item.control for item in controls} == {"re-paired"}


def test_disagreements_come_next_to_whoever_has_not_seen_them():
    q = queue()
    for k in range(5):
        q.item("ann", k)
    q.ask_again([150])
    assert q.item("carl", 0).pair == 150
    assert q.item("carl", 1).pair != 150
    assert q.item("carl", 0).origin == "disagreement"


def test_a_tiny_audit_has_no_controls_and_ends():
    q = ReviewQueue(np.full(3, 0.5), np.array([1, 2, 3]))
    items = [q.item("ann", k) for k in range(4)]
    assert sorted(item.pair for item in items[:3]) == [0, 1, 2]
    assert items[3] is None
