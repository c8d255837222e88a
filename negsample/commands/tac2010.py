"""``negsample tables p3-table5``, ``p3-table6``, ``p3-table7``."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from negsample.commands import options
from negsample.errors import InputError


def _tac_command(number: int, about: str) -> Callable[..., None]:
    """The command of a table; the three share a folder, its trainings and its scores."""

    def command(
        out: Annotated[
            str, typer.Option("--out", help="Folder for models, scores and tables; gone on with.", metavar="DIR")
        ],
        settings: Annotated[
            list[str] | None, typer.Argument(help="Settings of all trainings, as for 'train'.", metavar="KEY=VALUE")
        ] = None,
        tac: Annotated[
            str | None, typer.Option("--tac", help="Folder with TAC 2010's archives, packed or not.", metavar="DIR")
        ] = None,
        models: Annotated[
            str | None,
            typer.Option("--models", help="Model folders instead of training, such as 'runs/*-*'.", metavar="GLOB"),
        ] = None,
        rouge_only: Annotated[
            bool, typer.Option("--rouge-only", help="No models: what to check the archive with (Tables 6 and 7).")
        ] = False,
        corpus: Annotated[
            list[str] | None,
            typer.Option("--corpus", help="Train on these of the paper's four (NAME or NAME:DIR); may be repeated."),
        ] = None,
        base: Annotated[
            str | None, typer.Option("--base", help="BERT-base: hub id or folder.", metavar="MODEL")
        ] = None,
        tiny: Annotated[
            str | None, typer.Option("--tiny", help="BERT-tiny: hub id or folder.", metavar="MODEL")
        ] = None,
        precision: options.Precision = "float32",
        bootstrap: options.Bootstrap = 1000,
        seed: options.Seed = 0,
        smoke: options.Smoke = False,
    ) -> None:
        from negsample.io.resume import work_folder
        from negsample.io.run_record import Stopwatch
        from negsample.papers import tac2010_models as training
        from negsample.papers import tac2010_tables as tac_tables
        from negsample.papers.grid import write_outputs
        from negsample.papers.published import published

        watch, say, folder = Stopwatch(), partial(print, flush=True), Path(out)
        if tac is None and not smoke:
            raise InputError("give --tac DIR, the folder with TAC2010's documents and GuidedSumm2010_eval (from NIST)")
        if rouge_only and number == 5:
            raise InputError("--rouge-only: Table 5 has no ROUGE; run tables p3-table6 or p3-table7")
        if (rouge_only or models) and (settings or corpus or base or tiny):
            raise InputError(
                "settings, --corpus, --base and --tiny are for training; leave out --models and --rouge-only"
            )
        trained = training.find_models(models) if models else []
        data = tac_tables.stand_in() if smoke else tac_tables.load_tac2010(str(tac))
        for note in data.notes:
            say(note)
        cells = []
        asked: dict[str, Any] = {
            "settings": settings or [],
            "base": base or training.BASE,
            "tiny": tiny or training.TINY,
            "smoke": smoke,
        }
        if not rouge_only and models is None:
            cells = training.tac2010_cells(
                asked["settings"], corpora=corpus or training.CORPORA, base=asked["base"], tiny=asked["tiny"]
            )
            cells = training.small_cells(cells, say) if smoke else cells
        with work_folder(
            folder, {"data": data.fingerprint}, name="judgments.json", what="tables of TAC 2010", alone=False
        ):
            pass
        if cells:
            trained = training.train_models(cells, folder / "models", asked, say)
        found = [tac_tables.TacModel(*each) for each in trained]
        columns = tac_tables.model_columns(found, data, folder, precision=precision, say=say)
        beside = list(zip(found, columns, strict=True))
        table = tac_tables.tac2010_table(number, data, beside, published(number), bootstrap=bootstrap, seed=seed)
        name = f"table{number}"
        text = tac_tables.markdown(table)
        write_outputs(
            folder,
            name,
            table,
            rows=table["figures"],
            columns=tac_tables.CSV_COLUMNS,
            text=text,
            watch=watch,
            cells=(),
            command=sys.argv,
            smoke=smoke,
            config={
                **asked,
                "precision": precision,
                "bootstrap": bootstrap,
                "models": [str(m.folder) for m in found],
            },
            seed=seed,
            data={"tac2010": data.fingerprint},
            signatures=table["signatures"],
        )
        print(text, end="")
        print(f"\n{out}: {name}.json, {name}.csv, {name}.md, run.json; scores below scores/, models below models/")

    command.__name__, command.__doc__ = f"p3_table{number}", about
    return command


p3_table5 = _tac_command(5, "4 corpora x 4 recipes x 2 BERTs against people on TAC 2010: Bao et al. 2021, Table 5.")
p3_table6 = _tac_command(6, "The best models and ROUGE against people on TAC 2010, Pearson: Bao et al. 2021, Table 6.")
p3_table7 = _tac_command(7, "The best models and ROUGE against people on TAC 2010, Spearman: Bao et al. 2021, Table 7.")
