"""Every family of GGUF gives the logits of the model it was written from."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")
pytest.importorskip("gguf", reason="needs the extra `eval`")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from forgetmap.base.errors import InputError
from forgetmap.evaluate.convert import convert_gguf
from tiny_gguf import FAMILIES, make_network, write_gguf

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
ATOL = 1e-5


def logits(network):
    tokens = torch.arange(3, 3 + 24)[None]
    with torch.inference_mode():
        return network(input_ids=tokens).logits


@pytest.mark.parametrize("family", FAMILIES)
def test_the_folder_computes_what_the_original_computes(family, tmp_path):
    network = make_network(family)
    path = write_gguf(tmp_path / "model.gguf", network, family)
    folder = convert_gguf(path, tmp_path / "out")
    ours, told = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    expected = logits(network)
    assert expected.std() > 0.1, "a model without opinions tests nothing"
    torch.testing.assert_close(logits(ours.eval()), expected, atol=ATOL, rtol=0)


def test_it_is_what_transformers_reads_from_the_file(tmp_path):
    """Its own loader ignores the width of heads in qwen3, so only this family can be asked."""
    write_gguf(tmp_path / "model.gguf", make_network("qwen2"), "qwen2")
    theirs = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="model.gguf", dtype=torch.float32
    )
    ours = AutoModelForCausalLM.from_pretrained(
        convert_gguf(tmp_path / "model.gguf", tmp_path / "out"), dtype=torch.float32
    )
    torch.testing.assert_close(logits(ours.eval()), logits(theirs.eval()), atol=ATOL, rtol=0)


@pytest.mark.parametrize("copied", [False, True])
def test_a_copy_of_the_embeddings_is_no_output_matrix(copied, tmp_path):
    network = make_network("qwen3")
    path = write_gguf(tmp_path / "model.gguf", network, "qwen3", copy_head=copied)
    folder = convert_gguf(path, tmp_path / "out")
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is True
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.testing.assert_close(logits(ours.eval()), logits(network), atol=ATOL, rtol=0)


def test_an_output_matrix_of_its_own_is_kept(tmp_path):
    path = write_gguf(tmp_path / "model.gguf", make_network("llama"), "llama")
    folder = convert_gguf(path, tmp_path / "out")
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is False


def test_one_matrix_in_two_roundings_is_tied_on_request(tmp_path):
    network = make_network("llama")
    path = write_gguf(tmp_path / "model.gguf", network, "llama")
    folder = convert_gguf(path, tmp_path / "out", tied=True)
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is True
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.testing.assert_close(ours.get_input_embeddings().weight, network.lm_head.weight)


def test_digits_are_split_as_each_family_splits_them(tmp_path):
    """Qwen takes digits one by one; Llama 3 up to three, of which these tokens know single ones."""
    from tokenizers import Regex, pre_tokenizers

    from forgetmap.evaluate.gguf_tokenizers import _SPLITS

    text = "It's 12345 a\n\nb  c, d's été"
    expected = {
        "qwen2": ["It", "'s", " ", "1", "2", "3", "4", "5", " a", "\n\n", "b", " ", " c"],
        "llama-bpe": ["It", "'s", " ", "123", "45", " a", "\n\n", "b", " ", " c"],
    }
    for name, words in expected.items():
        split = pre_tokenizers.Split(Regex(_SPLITS[name]), "isolated")
        found = [word for word, _ in split.pre_tokenize_str(text)]
        assert found == [*words, ",", " d", "'s", " été"], name
    folder = convert_gguf(
        write_gguf(tmp_path / "model.gguf", make_network("qwen2"), "qwen2"), tmp_path / "out"
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("an 12") == ["an", "Ġ", "1", "2"]
    assert tokenizer.decode(tokenizer.encode("an ant 12 e")) == "an ant 12 e"


def test_the_marks_of_phi3_take_the_space_behind_them_along(tmp_path):
    folder = convert_gguf(
        write_gguf(tmp_path / "model.gguf", make_network("phi3"), "phi3"), tmp_path / "out"
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.encode("</s> \n") == [1, 2]


@pytest.mark.parametrize(
    ("tell", "said"),
    [
        (lambda w: w.add_string("llama.rope.scaling.type", "yarn"), "stretches its positions"),
        (lambda w: None, "the GGUF lacks 'llama.block_count'"),
    ],
)
def test_what_cannot_be_converted_is_told_with_the_file(tell, said, tmp_path):
    from gguf import GGUFWriter

    from tiny_gguf import _sizes, _vocabulary

    writer = GGUFWriter(tmp_path / "model.gguf", "llama")
    _vocabulary(writer, bytes_=False, family="llama")
    if "positions" in said:
        _sizes(writer, make_network("llama").config, "llama")
    else:
        writer.add_rope_dimension_count(8)
        writer.add_head_count(4)
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_context_length(8)
        writer.add_embedding_length(32)
        writer.add_feed_forward_length(32)
    tell(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(InputError, match=rf"model\.gguf: .*{said}"):
        convert_gguf(tmp_path / "model.gguf", tmp_path / "out")
    assert not (tmp_path / "out").exists()
