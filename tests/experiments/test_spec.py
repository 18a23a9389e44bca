"""A spec is refused with one sentence, and becomes the cells it says."""

from pathlib import Path

import pytest
import yaml

from mispair.config.load import load_config
from mispair.errors import InputError
from mispair.experiments.grid import cells, lines
from mispair.experiments.run import plan_experiment
from mispair.experiments.spec import list_specs, load_spec, parse_spec
from tests.experiments.grids import SHIPPED, tiny_cells, tiny_spec, write_spec


def test_the_first_seed_comes_first():
    found = [(c.seed, c.line, c.column) for c in tiny_cells(Path("out"), seeds=2)]
    once = [("plain", "0.2"), ("plain", "0.6"), ("l2rm", "0.2"), ("l2rm", "0.6")]
    assert found == [(0, *c) for c in once] + [(1, *c) for c in once]


def test_a_cell_is_what_the_layers_say():
    changes = {
        "columns": {0.6: {"set": {"data.noise.rate": 0.6}, "row_set": {"l2rm": {"method.transport.mass": 0.3}}}},
        "data": {
            "scenes": {"set": {"train.epochs": 6, "method.temperature": 0.07}, "row_set": {"plain": {"train.lr": 1.0}}}
        },
    }
    plain, l2rm = tiny_cells(Path("out"), seeds=1, **changes)
    assert (plain.config.train.epochs, plain.config.train.lr, plain.config.method.name) == (6, 1.0, "plain")
    assert (l2rm.config.method.transport.mass, l2rm.config.method.temperature, l2rm.config.train.lr) == (
        0.3,
        0.07,
        2e-4,
    )
    assert l2rm.folder == Path("out/cells/l2rm/0.6/seed-0")


def test_a_seed_is_the_runs_and_the_noises():
    for cell in tiny_cells(Path("out"), seeds=3):
        assert cell.config.seed == cell.config.data.noise.seed == cell.seed


def test_a_preset_keeps_the_data_sets_warm_up(tmp_path):
    (tmp_path / "base.yaml").write_text(
        "method: {name: l2rm, warmup_epochs: 2, transport: {mass: 0.7}}\ntrain: {epochs: 9}\n"
    )
    values = tiny_spec(rows={"l2rm-paper": {"method": "l2rm-paper"}}, data={"scenes": {"config": "base.yaml"}})
    spec = parse_spec(values, "x")
    method = cells(spec, tmp_path / "x.yaml", "scenes", "scenes", tmp_path, 1)[0].config.method
    assert (method.warmup_epochs, method.split.signal, method.transport.mass) == (2, "triplet_hardest", 0.1)


def test_only_leaves_what_is_named():
    found = tiny_cells(Path("out"), only=["row=l2rm", "column=0.6"])
    assert [(c.line, c.column) for c in found] == [("l2rm", "0.6")]


def test_sgraf_follows_its_members():
    spec = parse_spec(
        tiny_spec(data={"scenes": {"backbones": ["sgraf", "sgr", "saf"], "model": "{backbone}:small"}}), "x"
    )
    found = cells(spec, Path("x.yaml"), "scenes", "scenes", Path("out"), 1, ["row=plain-sgr,plain-saf,plain-sgraf"])
    assert [c.line for c in found] == ["plain-sgr", "plain-sgr", "plain-saf", "plain-saf", "plain-sgraf", "plain-sgraf"]
    assert [m.parts[-3:] for m in found[-1].members] == [
        ("plain-sgr", "0.6", "seed-0"),
        ("plain-saf", "0.6", "seed-0"),
    ]
    assert found[-1].config is None
    assert [c.config.model.name for c in found[:-2]] == ["sgr", "sgr", "saf", "saf"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rowz": {}}, "there is no rowz in an experiment"),
        ({"rows": {}}, "at least one row and one column"),
        ({"rows": {"a/b": {}}}, "row 'a/b' names a file or folder"),
        ({"name": "../evil"}, "name '../evil' names a file or folder"),
        ({"figure": "sweep", "columns": {"low": {}}}, "columns that are numbers, got low"),
        ({"data": {"scenes": {"rows": ["nobody"]}}}, "data.scenes names row 'nobody'"),
        ({"data": {"scenes": {"backbones": ["sgr", "sgraf"]}}}, "sgraf is the mean of sgr and saf"),
        ({"columns": {"0.2": {"row_set": {"nobody": {}}}}}, "column 0.2 names row 'nobody'"),
        ({"data": {"scenes": {"evaluate": []}}}, "at least 1 of them, got 0"),
        ({"data": {"scenes": {"backbones": ["vse", "x/../../../evil"]}}}, "backbone 'x/../../../evil' names a file"),
        ({"figure": "pie"}, "figure: input should be"),
    ],
)
def test_a_bad_spec_costs_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence) as error:
        parse_spec(tiny_spec(**changes), "tiny.yaml")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("tiny.yaml")


@pytest.mark.parametrize(
    ("changes", "only", "sentence"),
    [
        ({"rows": {"a": {"method": "magic"}}}, (), "row a: there is no method 'magic'"),
        (
            {"data": {"scenes": {"config": "nowhere/{config}.yaml"}}},
            (),
            "row plain needs the configuration nowhere/plain",
        ),
        (
            {"data": {"scenes": {"config": "{0}{config.__class__}{.yaml"}}},
            (),
            r"row plain needs the configuration \{0\}\{config.__class__\}\{.yaml, which is not there",
        ),
        ({"data": {"scenes": {"model": "{x}{"}}}, (), r"there is no model '\{x\}\{'"),
        ({"rows": {"a": {"set": {"method.magic": 1}}}}, (), "there is no method.magic"),
        ({}, ["row=nobody"], "there is no row 'nobody' here; there are plain, l2rm"),
        ({}, ["rows=plain"], "--only takes row=a,b or column=a,b"),
    ],
)
def test_a_bad_cell_costs_one_sentence(changes, only, sentence):
    with pytest.raises(InputError, match=sentence):
        tiny_cells(Path("out"), only=only, **changes)


def test_the_kind_of_data_is_seen_from_its_name_or_said(tmp_path):
    spec = parse_spec(tiny_spec(data={"f30k": {}, "f8k": {}, "scenes": {}}), "x")
    assert spec.kind_of("/somewhere/f30k_precomp", None) == "f30k"
    assert spec.kind_of("F8K", None) == "f8k"
    assert spec.kind_of("mine", "f8k") == "f8k"
    for data, said in (("mine", None), ("f8k", "coco"), ("f8kx", None)):
        with pytest.raises(InputError, match="--as"):
            spec.kind_of(data, said)


def test_a_spec_is_found_by_name_and_by_path(tmp_path):
    assert load_spec("main")[0].name == "main"
    assert load_spec(str(write_spec(tmp_path)))[0].name == "tiny"
    for name, sentence in (("mian", "did you mean main"), ("/nowhere/main.yaml", "no experiment /nowhere/main.yaml")):
        with pytest.raises(InputError, match=sentence):
            load_spec(name)
    (tmp_path / "bad.yaml").write_text("rows: [")
    with pytest.raises(InputError, match="bad.yaml, line 1 is not valid YAML"):
        load_spec(str(tmp_path / "bad.yaml"))
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(InputError, match="must hold name, title"):
        load_spec(str(tmp_path / "list.yaml"))


SPECS = [(path, kind) for path in sorted(SHIPPED.glob("*.yaml")) for kind in yaml.safe_load(path.read_text())["data"]]


@pytest.mark.parametrize(("path", "kind"), SPECS, ids=lambda value: getattr(value, "stem", value))
def test_every_shipped_spec_resolves(path, kind):
    spec, _ = load_spec(str(path))
    assert spec.name == path.stem
    found = cells(spec, path, kind, "somewhere", Path("out"), 1)
    assert len(found) == len({c.folder for c in found})
    assert {c.line for c in found} == {line.key for line in lines(spec, spec.data[kind])}
    assert all(c.config.data.path == "somewhere" for c in found if c.config is not None)


def test_one_budget_for_all_rows_where_methods_are_compared():
    for kind in ("f8k", "scenes"):
        spec, path = load_spec("main")
        found = [c.config for c in cells(spec, path, kind, "x", Path("out"), 1)]
        assert len({c.train.model_dump_json() for c in found}) == 1
        assert len({c.model.model_dump_json() for c in found}) == 1


def test_the_specs_are_listed():
    assert {path.stem for path in list_specs()} >= {"main", "real", "ablation", "warmup", "batch", "gallery", "mass"}


def test_the_shipped_main_table_injects_what_its_columns_say():
    spec, path = load_spec("main")
    for cell in cells(spec, path, "f8k", "x", Path("out"), 1):
        assert cell.config.data.noise.rate == float(cell.column)
        assert cell.config.data.noise.protocol == "image"
        assert cell.config.data.noise.oracle == cell.line.startswith("oracle")
    assert load_config(SHIPPED.parent / "configs/f8k/l2rm-vse.yaml").train.epochs == 14


def test_a_first_look_is_one_seed_of_the_cells_named_for_it(tmp_path):
    plan = plan_experiment("trust", tmp_path / "out", quick=True)
    assert {(cell.line, cell.column, cell.seed) for cell in plan.cells} == {
        (row, column, 0) for row in ("sce", "l2rm", "oracle") for column in ("0", "0.4")
    }
    assert plan.seeds == 1


def test_every_shipped_experiment_has_a_quick_cells():
    for path in SHIPPED.glob("*.yaml"):
        spec, where = load_spec(str(path))
        for kind in spec.data:
            if spec.compares == "detectors":
                continue
            whole = cells(spec, where, kind, "x", Path("out"), 1)
            part = (
                cells(spec, where, kind, "x", Path("out"), 1, spec.quick_cells(kind))
                if not backbones(spec, kind)
                else []
            )
            assert not part or len(part) < len(whole) or len({cell.column for cell in whole}) == 1, (path.stem, kind)


def backbones(spec, kind):
    """Several backbones make several lines of a row, which a list of rows does not name."""
    return len(spec.data[kind].backbones) > 1 and any(choice.startswith("row=") for choice in spec.quick)


def test_a_first_look_nobody_named(tmp_path):
    spec, _ = load_spec("mass")
    assert spec.quick_cells("scenes") == ["column=0.05,1.0"]  # a sweep: its ends
    spec, _ = load_spec("gallery")
    assert spec.quick_cells("scenes") == ["column=0.4"]
    plan = plan_experiment("gallery", tmp_path / "out", quick=True)
    assert {(cell.line, cell.column, cell.seed) for cell in plan.cells} == {("rcl", "0.4", 0), ("l2rm", "0.4", 0)}


def test_a_value_may_name_a_file_of_the_data(tmp_path):
    """`{data}` is the path of the data; specs and their rows hold no path of a machine."""
    spec, path = load_spec("text-vectors")
    listed = cells(spec, path, "f8k-one", "somewhere/f8k-one", tmp_path, 1, ["column=0.4"])
    second = {cell.line: cell.config.data.second for cell in listed if cell.config is not None}
    texts = "somewhere/f8k-one/texts.npy"
    assert second == {"sce-words": None, "sce-vectors": texts, "l2rm-words": None, "l2rm-vectors": texts}


def test_only_the_backbone_is_filled_into_a_published_name():
    """Python's own templates would look into objects, or fill gigabytes: a spec may be a stranger's."""
    rows = {"a": {"published": "L2RM-{backbone}"}, "b": {"published": "{backbone:>2000000000}{0}{"}}
    spec = parse_spec(tiny_spec(rows=rows), "x")
    assert [line.published for line in lines(spec, spec.data["scenes"])] == [
        "L2RM-VSE",
        "{backbone:>2000000000}{0}{",
    ]


@pytest.mark.parametrize("seeds", [0, -1, 10**9])
def test_seeds_have_bounds(tmp_path, seeds):
    with pytest.raises(InputError, match="an experiment has 1 to 1,000 seeds, got"):
        plan_experiment(str(write_spec(tmp_path)), tmp_path / "out", seeds=seeds)
