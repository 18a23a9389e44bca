#!/usr/bin/env bash
# Does the built wheel work where there is no repository and no developer's tool? Usage: tools/test_wheel.sh WHEEL [PYTHON]
set -euo pipefail
wheel=$(realpath "$1")
python=${2:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
unset PYTHONPATH
"$python" -m venv "$away/venv"
"$away/venv/bin/python" -m pip install -q --disable-pip-version-check -c "$root/constraints.txt" "$wheel"
export PATH="$away/venv/bin:$PATH" COLUMNS=200 NO_COLOR=1
cd "$away"
say() { echo "wheel: $*"; }

say "only what it needs is installed"
python - << 'PY'
import importlib.util, sys
import mispair
assert "site-packages" in mispair.__file__, mispair.__file__
extra = [name for name in ("pytest", "hypothesis", "matplotlib", "sklearn", "ot") if importlib.util.find_spec(name)]
sys.exit(f"installed without being asked for: {extra}" if extra else 0)
PY
say "$(mispair --version)"
mispair --help > help.txt && grep -q "mispair demo" help.txt
mispair methods > methods.txt && grep -q l2rm methods.txt
mispair doctor > doctor.txt

say "configurations and experiments by name"
mispair experiments list > list.txt && grep -q main list.txt
mispair train -c demo/l2rm-vse --set data.scenes.pictures=400 --epochs 4 --set method.warmup_epochs=2 -o run > /dev/null 2> train.log \
  || { cat train.log; exit 1; }

say "evaluate, audit, report, fix"
mispair evaluate run > /dev/null 2> evaluate.log
mispair audit run -o audit > /dev/null 2> audit.log || { cat audit.log; exit 1; }
mispair report audit -o report.html > /dev/null 2>&1
test -s report.html
mispair fix audit --action drop -o clean > /dev/null 2> fix.log || { cat fix.log; exit 1; }
say "from Python"
python - << 'PY'
import numpy as np
import mispair
rng = np.random.default_rng(0)
images = rng.normal(size=(300, 16)).astype("float32")
texts = images + 0.3 * rng.normal(size=images.shape).astype("float32")
texts[:90] = texts[np.roll(np.arange(90), 1)]
verdicts = mispair.quick_audit(images, texts)
assert len(verdicts.worst(10)) == 10
PY
say "works"
