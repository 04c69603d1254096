"""What the documentation shows must run, and its figures must be the measured ones."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpcml import planted

ROOT = Path(__file__).parents[1]


def tool(name: str):
    """Import a script of ``tools``."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables, outputs = tool("docs_tables"), tool("docs_outputs")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text_of(page), flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder; one thread is quicker than two where tests share the cores, and gives the same bits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPCML_THREADS", "1")
    return tmp_path


@pytest.fixture
def likes(folder):
    """Write the files that pages use: likes.csv with the users ann and bob, and items.csv with titles and genres."""
    data = planted(200, 150, seed=1).data
    users = ["ann", "bob", *(f"user-{k}" for k in range(2, 200))]
    rows = [f"{users[user]},{item},5" for user, item in zip(data.rows, data.indices, strict=True)]
    (folder / "likes.csv").write_text("\n".join(["user_id,item_id,rating", *rows]))
    films = [f"{k},{data.items.title(k)},{'|'.join(data.items.attributes.of(k))}" for k in range(data.n_items)]
    (folder / "items.csv").write_text("\n".join(["item_id,title,genres", *films]))


PAGES = {
    "README.md": "because of your interest in",
    "docs/index.md": "P@10",
    "docs/how-to/read-data.md": "guessed",
    "docs/how-to/choose-model.md": "minority_R@10",
    "docs/how-to/train.md": "(150, 32)",
    "docs/how-to/tune.md": "shrink",
    "docs/how-to/recommend.md": "because of your interest in",
    "docs/how-to/new-users.md": "[",
    "docs/how-to/export.md": "",
    "docs/how-to/scale.md": "Interactions(200 users",
    "docs/explanation/evaluation.md": "NDCG@10",
    "docs/explanation/planted.md": "[",
}


@pytest.mark.parametrize("page", PAGES)
def test_python_of_a_page_runs_from_top_to_bottom(page, likes, capsys):
    code = "\n".join(blocks(page, "python"))
    assert code
    exec(compile(code, page, "exec"), {"__name__": "page"})
    assert PAGES[page] in capsys.readouterr().out


def test_the_page_on_extensions_runs_in_a_process_of_its_own(likes):
    code = "\n".join(blocks("docs/how-to/extend.md", "python"))  # it adds to registries that other tests read
    code += "\nimport dpcml\ndpcml.save(models[1], 'own')\nprint(dpcml.load('own').recommend('ann', n=1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mean_rank" in done.stdout


def shape(text: str) -> list[str]:
    """Return how lines of output begin, without what another machine may print differently: figures, chosen items."""
    lines = [line for kind, body in outputs.FENCE.findall(text) if kind != "python" for line in body.splitlines()]
    starts = [re.sub(r"[\d.,]+", "#", re.split(r"  | \| ", line)[0]) for line in lines]
    return [start for start in starts if start]


@pytest.mark.parametrize("page", outputs.PAGES)
def test_output_on_a_page_is_what_its_commands_print(page, folder):
    shown = text_of(page)
    assert shape(outputs.play(shown)) == shape(shown)


@pytest.mark.parametrize("name", tables.TABLES)
def test_tables_are_what_the_results_give(name):
    page = f"docs/generated/{name}.md"
    assert text_of(page) == tables.TABLES[name](), f"{page} is out of date: run 'python tools/docs_tables.py'"


def test_every_model_and_preset_is_on_the_page_of_models():
    from dpcml.models import MODELS
    from dpcml.models.presets import PRESETS

    page = text_of("docs/how-to/choose-model.md")
    assert not [name for name in {*MODELS, *PRESETS} if f"`{name}`" not in page]


def test_pages_show_no_raw_json():
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert not [page for page in pages if "```json" in page.read_text(encoding="utf-8")]


def test_the_site_builds(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Interactions" in (tmp_path / "reference" / "data" / "index.html").read_text(encoding="utf-8")
