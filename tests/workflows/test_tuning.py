"""Towers that learn: the library's before a step, trained by every method, and a checkpoint of the library again."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from torch.nn.functional import normalize

from mispair.auditing.fixing.judged_data import reopen
from mispair.config.load import load_config
from mispair.data import ColumnsConfig, open_split
from mispair.encoders.registry import open_encoder
from mispair.encoders.tower_inputs import TowerInputs
from mispair.encoders.towers import LoRA, Towers, with_marks
from mispair.errors import InputError
from mispair.methods import method_names
from mispair.models import InputSizes, build_model
from mispair.models.dual import DualConfig
from mispair.runtime.engine import Engine, EngineConfig
from mispair.workflows.audit import audit
from mispair.workflows.export import export
from mispair.workflows.networks import network_maker
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.data.samples import run as run_cli
from tests.workflows.tower_runs import FAMILIES, configured, keep_the_last

CONFIGS = Path(__file__).parents[2] / "configs" / "f30k"


@pytest.fixture(autouse=True)
def _learned(monkeypatch):
    keep_the_last(monkeypatch)


@pytest.mark.parametrize("encoder", FAMILIES)
@pytest.mark.parametrize("tune", ["lora", "full"])
def test_before_the_first_step_the_towers_are_the_encoder(hub, encoder, tune):
    data = open_split(configured(hub, encoder).data, "dev")
    known = open_encoder(str(hub / encoder), device="cpu", precision="float32")
    sizes = InputSizes(image_width=data.images.width, vocabulary_size=data.texts.kinds)
    model = build_model(DualConfig(tune=tune, encoder=str(hub / encoder)), sizes).eval()
    batch = data.batch(np.arange(8))
    with torch.no_grad():
        images = model.encode_images(batch.images, batch.image_mask)
        texts = model.encode_texts(batch.texts, batch.text_mask)
    pixels = batch.images.reshape(8, *data.images.shape).numpy()
    captions = [data.table.captions[row] for row in data.table.text_rows]
    seen = known.encode_images(pixels, ("vector",))["vector"].values
    read = known.encode_texts(captions, ("vector",))["vector"].values
    torch.testing.assert_close(images.values[:, 0], normalize(torch.from_numpy(seen), dim=1), rtol=0, atol=1e-5)
    torch.testing.assert_close(texts.values[:, 0], normalize(torch.from_numpy(read), dim=1), rtol=0, atol=1e-5)
    assert any(parameter.requires_grad for parameter in model.parameters())


def test_marks_stand_around_every_text():
    made = with_marks(torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([[1, 1, 1], [1, 0, 0]]) > 0, [1], [2, 3], 9)
    assert made["input_ids"].tolist() == [[1, 5, 6, 7, 2, 3], [1, 8, 2, 3, 9, 9]]
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]]


@pytest.mark.parametrize("method", sorted(method_names()))
def test_every_method_trains_towers(hub, tmp_path, method):
    result = train(configured(hub, "clip", method=method), tmp_path / "run", summarize=False)
    assert result.progress.epoch == 2
    learned = next(iter(result.training.trainer.method.networks.values())).state_dict()
    moved = [key for key, value in learned.items() if "lora_B" in key and value.abs().max() > 0]
    assert moved, "adapters start at zero and must have learned"
    saved = load_run(tmp_path / "run").models[0].state_dict()
    assert saved.keys() == learned.keys()
    assert not [key for key in saved if "base_layer" in key], "what does not learn is not saved again"


def test_locked_layers_stay_and_rates_fall_with_depth(hub):
    towers = Towers(TowerInputs(str(hub / "clip")), "full", locked=1)
    learn = {name for name, parameter in towers.named_parameters() if parameter.requires_grad}
    assert not [name for name in learn if ".layers.0." in name or "embeddings" in name]
    assert [name for name in learn if ".layers.1." in name]
    rates = Towers(TowerInputs(str(hub / "clip")), "full").rates(0.5)
    by_layer = {rates[name] for name in rates if ".layers.0." in name}, {rates[n] for n in rates if ".layers.1." in n}
    assert by_layer == ({0.5}, {1.0})
    assert {rates[name] for name in rates if "patch_embedding" in name} == {0.25}
    with pytest.raises(InputError, match="locks more layers"):
        Towers(TowerInputs(str(hub / "clip")), "full", locked=9)


def test_the_engine_steps_each_group_at_its_own_rate(hub):
    config = configured(hub, "clip", "model.tune=full", "model.tower_rate=0.1", "model.temperature=learned")
    data = open_split(config.data, "train")
    sizes = InputSizes(image_width=data.images.width, vocabulary_size=data.texts.kinds)
    engine = Engine(EngineConfig(device="cpu"))
    engine.adopt({"net": network_maker(config, sizes)()}, {})
    engine.set_learning_rate(1.0)
    assert [group["lr"] for group in engine.optimizers["net"].param_groups] == [1.0, 0.1]


def test_checkpointing_gives_the_same_gradients_and_computes_layers_twice(hub):
    found, computed = [], []
    for checkpointing in (False, True):
        towers = Towers(TowerInputs(str(hub / "siglip")), "full", checkpointing=checkpointing).train()
        layers = [m for name, m in towers.named_modules() if "vision" in name and name.endswith("mlp.fc1")]
        passes = []
        for layer in layers:
            layer.register_forward_hook(lambda *_, passes=passes: passes.append(1))
        pixels = torch.randn(3, 3 * 32 * 32, generator=torch.Generator().manual_seed(0))
        towers.see(pixels).sum().backward()
        found.append([p.grad for p in towers.parameters() if p.grad is not None])
        computed.append(len(passes))
    torch.testing.assert_close(*found)
    assert computed == [3, 3 + 2], "two layers of the encoder again; the pooling head keeps what it computed"


def test_the_mean_of_the_steps_is_kept_of_towers_too(hub, tmp_path):
    towers = ("model.tune=full", "model.locked=1", "model.space=separate")  # such a start is no candidate for the best
    config = configured(hub, "clip", *towers, "train.average=0.9", "train.epochs=1")
    trainer = train(config, tmp_path / "run", summarize=False).training.trainer
    average, net = trainer.engine.averages["net"], trainer.method.modules["net"]
    saved = load_run(tmp_path / "run").models[0].state_dict()
    learned = [name for name, parameter in net.named_parameters() if parameter.requires_grad]
    assert all(torch.equal(saved[name], mean) for name, mean in zip(learned, average.mean, strict=True))
    last = net.state_dict()
    assert [name for name in learned if not torch.equal(saved[name], last[name])]


def test_locked_layers_and_slow_ones_stay_where_they_are_told(hub, tmp_path):
    """After training: what is locked has not moved, and a lower layer at a rate of nearly 0 hardly has."""
    sets = ("model.tune=full", "model.locked=1", "model.layer_decay=1", "model.tower_rate=1e-6", "model.hidden=4")
    net = train(configured(hub, "clip", *sets), tmp_path / "run", summarize=False).training.trainer.method.modules[
        "net"
    ]
    start = Towers(TowerInputs(str(hub / "clip")), "full").state_dict()
    moved = {name: (p - start[name]).abs().max().item() for name, p in net.towers.named_parameters()}
    locked = [name for name in moved if ".layers.0." in name or "embeddings" in name]
    assert locked
    assert all(moved[name] == 0 for name in locked)
    assert 0 < max(moved.values()) < 1e-6
    assert net.images.outer.weight.abs().max() > 1e-4, "the head goes at the rate of the run"


def test_a_stopped_training_of_towers_goes_on_to_the_same_end(hub, tmp_path):
    from tests.synthetic import stopping_engine

    sets = ("model.tune=full", "model.locked=1", "train.average=0.9", "train.crop=0.6", "train.drop_words=0.3")
    config = configured(hub, "clip", *sets)
    train(config, tmp_path / "whole", summarize=False)
    train(config, tmp_path / "cut", engine=stopping_engine(config.engine, 4), summarize=False)
    train(config, tmp_path / "cut", resume=True, summarize=False)
    whole, cut = (load_run(tmp_path / name).models[0].state_dict() for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[key], cut[key]) for key in whole)
    start = Towers(TowerInputs(str(hub / "clip")), "full").state_dict()
    assert any(not torch.equal(whole[f"towers.{key}"], start[key]) for key in start if f"towers.{key}" in whole)


@pytest.mark.parametrize("tune", ["lora", "full"])
@pytest.mark.parametrize("encoder", ["clip", "siglip"])
def test_exported_to_transformers_it_is_the_run(hub, tmp_path, encoder, tune):
    train(configured(hub, encoder, f"model.tune={tune}"), tmp_path / "run")
    folder = export(tmp_path / "run", tmp_path / "out", "transformers")
    model = transformers.AutoModel.from_pretrained(folder)
    run = load_run(tmp_path / "run")
    data = run.open_split("test")
    pixels = data.images.take(np.arange(8))[0]
    with torch.no_grad():
        found = model.get_image_features(torch.from_numpy(pixels.reshape(8, 3, 32, 32))).pooler_output
    np.testing.assert_allclose(normalize(found, dim=1).numpy(), run.encode_images(data.images).vectors, atol=1e-5)
    before = open_encoder(str(hub / encoder), device="cpu", precision="float32").encode_images(
        pixels.reshape(8, 3, 32, 32), ("vector",)
    )["vector"]
    assert (normalize(found, dim=1) - normalize(torch.from_numpy(before.values), dim=1)).abs().max() > 1e-4
    card = (folder / "README.md").read_text()
    assert "data hash" in card
    assert "rSum" in card
    assert "licence" in card
    assert not [module for module in model.modules() if "lora" in type(module).__module__]


@pytest.mark.parametrize("encoder", FAMILIES)
def test_exported_to_sentence_transformers_it_is_the_run(hub, tmp_path, encoder):
    library = pytest.importorskip("sentence_transformers")
    train(configured(hub, encoder), tmp_path / "run")
    folder = export(tmp_path / "run", tmp_path / "out", "sentence-transformers")
    made = library.SentenceTransformer(str(folder), device="cpu")
    run = load_run(tmp_path / "run")
    for captions in (["a dog runs", "two cats"], ["the"]):
        found = made.encode(captions, normalize_embeddings=True)
        np.testing.assert_allclose(found, run.encode_texts(captions).vectors, atol=1e-5)
    files = [hub / "pictures" / f"{k}.png" for k in range(3)]
    found = made.encode([Image.open(file).convert("RGB") for file in files], normalize_embeddings=True)
    np.testing.assert_allclose(found, run.encode_images(files).vectors, atol=1e-5)


def test_separate_towers_meet_in_a_head(hub, tmp_path):
    train(configured(hub, f"dinov2+{hub / 'bert'}"), tmp_path / "run")
    with pytest.raises(InputError, match="head on its towers"):
        export(tmp_path / "run", tmp_path / "out", "transformers")
    assert not (tmp_path / "out").exists()
    assert export(tmp_path / "run", tmp_path / "safe", "safetensors").is_dir()


@pytest.mark.parametrize("encoder", ["clip", "siglip2"])
def test_shipped_configurations_of_towers_train(hub, tmp_path, encoder):
    data = [f"data.path={hub / 'pairs.csv'}", f"data.images={hub / 'pictures'}", f"data.encoder={hub / encoder}"]
    config = load_config(CONFIGS / f"l2rm-dual-{encoder}-full.yaml", [*data, "train.epochs=2", "train.batch_size=8"])
    result = train(config, tmp_path / "run", summarize=False)
    assert result.progress.epoch == 2
    assert all(np.isfinite(value) for value in result.progress.best_metrics.values())
    rates = {group["relative"] for group in result.training.trainer.engine.optimizers["net"].param_groups}
    assert max(rates) == 1
    assert min(rates) == pytest.approx(0.8**2 * (0.01 if encoder == "siglip2" else 1))


def test_from_the_command_line(hub, tmp_path, monkeypatch, capsys):
    args = ["train", str(hub / "pairs.csv"), "--images", str(hub / "pictures"), "--encoder", str(hub / "clip")]
    short = ["--epochs", "2", "--batch-size", "8", "--method", "plain", "-o", str(tmp_path / "run")]
    done = run_cli(monkeypatch, capsys, *args, "--tune", "lora", *short)
    assert done.code == 0, done.err
    assert "dual" in (tmp_path / "run" / "config.yaml").read_text()
    monkeypatch.chdir(hub)
    again = [*args[:5], "clip", "--tune", "full", *short[:-1], str(tmp_path / "full")]
    assert run_cli(monkeypatch, capsys, *again).code == 0
    monkeypatch.chdir(tmp_path)
    assert load_run(tmp_path / "full").config.data.encoder == str(hub / "clip"), "named from another folder"
    done = run_cli(monkeypatch, capsys, *args[:4], "--tune", "full")
    assert done.code == 2
    assert "name it with --encoder" in done.err


def test_what_towers_judged_is_known_to_be_what_they_learned_and_can_be_fixed(hub, tmp_path):
    train(configured(hub), tmp_path / "run", summarize=True)
    run = load_run(tmp_path / "run")
    other = run.config.data.model_copy(update={"columns": ColumnsConfig(caption="title")})
    verdicts = audit(run, other, folds=0)
    assert "learned by heart" in verdicts.facts.held_out, "the same pairs, described in other words"
    fixed = verdicts.fix("weight", tmp_path / "fixed")
    assert f"--encoder {hub / 'clip'} --images {hub / 'pictures'}" in fixed.train
    assert fixed.train.endswith("--weights weight --tune lora")
    shutil.copytree(hub / "pictures", tmp_path / "pictures")
    moved = run.config.data.model_copy(update={"images": str(tmp_path / "pictures")})
    (tmp_path / "pictures" / "3.png").write_bytes((hub / "pictures" / "4.png").read_bytes())
    assert "learned by heart" in audit(run, moved, folds=0).facts.held_out, "all pairs but one are those of the run"
    for picture in (tmp_path / "pictures").iterdir():
        picture.write_bytes(picture.read_bytes() + b"of another camera")
    judged = audit(run, moved, folds=0)
    assert "learned by heart" not in judged.facts.held_out, "other pictures are other pairs"
    (tmp_path / "pictures" / "3.png").write_bytes((hub / "pictures" / "5.png").read_bytes())
    with pytest.raises(InputError, match="has changed since the audit"):
        reopen(judged)


def test_lora_values_reach_the_library(hub):
    towers = Towers(TowerInputs(str(hub / "clip")), "lora", lora=LoRA(rank=3, targets=("fc1",)))
    adapted = [name for name, _ in towers.named_parameters() if "lora_A" in name]
    assert adapted
    assert all("fc1" in name for name in adapted)
    assert {p.shape[0] for name, p in towers.named_parameters() if "lora_A" in name} == {3}
