"""What the site (mkdocs.yml) has beside the pages here: files of the repository, the commands' options, the API."""

import re
import tempfile
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click
from typer.main import get_command

from negsample.cli import app

ROOT = Path(__file__).resolve().parents[1]
# Files of the repository that are pages.
PAGES = {name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")} | {"README.md": "index.md"}
API = {
    "Estimators": ["negsample.models.load", "negsample.models.estimator.Estimator", "negsample.models.dataframe"],
    "What scores": ["negsample.scoring.scorer", "negsample.scoring.scorer.make_metric", "negsample.rewards.Reward"],
    "Pairs and negatives": ["negsample.corpora.load_pairs", "negsample.negatives.generate.generate"],
    "Training": ["negsample.train.config", "negsample.train.job.train", "negsample.train.reinforce.config"],
    "Agreement": [
        "negsample.eval.judgments.load_judgments",
        "negsample.eval.agreement.correlate",
        "negsample.eval.agreement.compare",
        "negsample.eval.metrics.learned",
    ],
    "Elsewhere": [
        "negsample.pytest_plugin",
        "negsample.inspect_scorer",
        "negsample.registry.Registry",
        "negsample.errors",
    ],
}
_sources = tempfile.TemporaryDirectory()


@event_priority(100)  # before mkdocstrings reads its paths
def on_config(config: MkDocsConfig) -> None:
    """Lay the folders as they are when installed (pyproject.toml, package-dir): mkdocstrings reads the sources there."""
    package = Path(_sources.name, "negsample")
    package.mkdir(exist_ok=True)
    for path in (*(ROOT / "negsample").iterdir(), *(ROOT / name for name in ("models", "train", "eval", "configs"))):
        if not (package / path.name).exists():
            (package / path.name).symlink_to(path)
    config.plugins["mkdocstrings"].config["handlers"]["python"]["paths"] = [_sources.name]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that are made here, and to the contents those that stand nowhere."""
    command = get_command(app)
    told = get_docs_for_click(obj=command, ctx=typer.Context(command), name="negsample", title="Commands")
    # The list of commands cuts their words short; the contents beside the page have them all.
    told = re.sub(r"\*\*Commands\*\*:\n.*?(?=^## )", "", told, count=1, flags=re.M | re.S)
    api = [f"## {title}\n\n" + "".join(f"::: {name}\n\n" for name in names) for title, names in API.items()]
    made = {"commands.md": told, "api.md": "# From Python\n\n" + "".join(api)}
    made |= {page: (ROOT / source).read_text(encoding="utf-8") for source, page in PAGES.items()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    listed = re.findall(r"[\w-]+\.md", str(config.nav))
    if more := sorted(file.src_uri for file in files.documentation_pages() if file.src_uri not in listed):
        config.nav.append({"More": more})


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to the repository's files into links of the site, which then has those files too."""
    base = ROOT if page.file.src_uri in PAGES.values() else ROOT / "docs"

    def moved(match: re.Match[str]) -> str:
        path = (base / match[2]).resolve()
        if not path.is_file() or not path.is_relative_to(ROOT):
            return match[0]  # a mistake, which the check of links tells
        name = path.relative_to(ROOT).as_posix()
        uri = PAGES.get(name, name.removeprefix("docs/"))
        if uri not in files.src_uris:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
        return f"{match[1]}{uri}"

    return re.sub(r"(\]\()([^()#\s:]+)(?=[#)])", moved, markdown)
