"""A model of transformers behind an OpenAI-compatible address on loopback, as servers reply."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class ServedModel(ThreadingHTTPServer):
    """Tells the tokens of a prompt: by their ids, as vLLM does, or by an echo of their texts.

    An echo decodes tokens one by one; with a tokenizer like SentencePiece it loses their spaces.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, folder: Path, *, tells_ids: bool, ends_turns: bool = False, owner: str = ""
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tells_ids = tells_ids
        self.ends_turns = ends_turns
        """It ignores `continue_final_message`, and lets another turn begin."""
        self.owner = owner
        """Who signs the card of the model; nobody: there is no card."""
        self.lock = threading.Lock()
        self.asked: list[dict[str, Any]] = []

    @property
    def name(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1#tiny"

    def __enter__(self) -> ServedModel:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What the server says to a request for the tokens of a prompt."""
        with self.lock:
            self.asked.append(asked)
            text = asked.get("prompt") or self._rendered(asked)
            ids = self.tokenizer(text)["input_ids"]
            values = self._log_probabilities(ids)
        tokens = [self.tokenizer.decode([one]) for one in ids]
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        usage = {"prompt_tokens": len(ids), "completion_tokens": 0}
        if self.tells_ids:
            entries = [
                None if value is None else {str(one): {"logprob": value, "decoded_token": token}}
                for one, value, token in zip(ids, values, tokens, strict=True)
            ]
            told = {"prompt_logprobs": entries, "prompt_token_ids": ids}
            if "messages" in asked:
                choice["message"] = {"content": "x"}
                return {"choices": [choice], "usage": usage, **told}
            return {"choices": [{**choice, "text": "", **told}], "usage": usage}
        places = [sum(map(len, tokens[:n])) for n in range(len(tokens))]
        told = {"tokens": tokens, "text_offset": places, "token_logprobs": values}
        choice |= {"text": text, "message": {"content": "x"}, "logprobs": told}
        return {"choices": [choice], "usage": usage}

    def generate(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What SGLang's `/generate` says: `output_ids` and the rest are left out."""
        with self.lock:
            self.asked.append(asked)
            ids = asked.get("input_ids") or self.tokenizer(asked["text"])["input_ids"]
            values = self._log_probabilities(ids)
        texts = [self.tokenizer.decode([one]) for one in ids]
        told = [list(one) for one in zip(values, ids, texts, strict=True)]
        finish = {"type": "length", "length": 1}
        return {
            "text": "x",
            "meta_info": {
                "id": "0", "finish_reason": finish, "prompt_tokens": len(ids),
                "weight_version": "default", "input_token_logprobs": told,
            },
        }  # fmt: skip

    def tokenize(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What SGLang's `/tokenize` says to the messages of a chat."""
        messages, more = asked["messages"], ""
        if asked.get("continue_final_message"):
            *messages, last = messages
            more = last["content"]
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        ids = self.tokenizer(text + more, add_special_tokens=False)["input_ids"]
        return {"tokens": ids, "count": len(ids), "max_model_len": 512}

    def _rendered(self, asked: dict[str, Any]) -> str:
        goes_on = asked.get("continue_final_message", False) and not self.ends_turns
        return self.tokenizer.apply_chat_template(
            asked["messages"],
            tokenize=False,
            continue_final_message=goes_on,
            add_generation_prompt=not goes_on,
        )

    def _log_probabilities(self, ids: list[int]) -> list[float | None]:
        import torch

        with torch.inference_mode():
            logits = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return [None, *(float(logits[n, one]) for n, one in enumerate(ids[1:]))]


class _Handler(BaseHTTPRequestHandler):
    server: ServedModel

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        roads = {"/generate": self.server.generate, "/tokenize": self.server.tokenize}
        self._send(200, roads.get(self.path, self.server.reply)(asked))

    def do_GET(self) -> None:
        card = {"id": "tiny", "owned_by": self.server.owner}
        self._send(200 if self.server.owner else 404, {"data": [card]})

    def _send(self, status: int, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
