"""Stage 07: vectors are kept on disk, and never believed for another model, prefix or text."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import need


class Model:
    """A model that keeps a list of the texts it was asked for. `turn` makes it another model."""

    def __init__(self, turn: float = 0.0) -> None:
        self.turn, self.asked = turn, list[str]()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    def vector(self, text: str) -> list[float]:
        angle = self.turn + sum(i * ord(sign) for i, sign in enumerate(text, 1)) % 97 / 97
        return [np.cos(angle), np.sin(angle), 0.25]

    def all(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.vector(text) for text in texts], dtype=np.float32)


def cached(model: Model, folder: Path, name: str = "model-a") -> Any:
    made = need("agent.index", "Embedder")(name, "query: ", "passage: ", model)
    return need("agent.cache", "cached")(made, folder)


def right(got: Any, model: Model, texts: Sequence[str], given: str) -> None:
    wanted = model.all(texts)
    same = np.asarray(got).shape == wanted.shape and np.allclose(got, wanted)
    assert same, f"given {given}: expected {wanted.tolist()}, came {np.asarray(got).tolist()}"
    assert got.dtype == np.float32, f"given {given}: expected float32, came {got.dtype}"


def test_what_was_embedded_is_not_asked_again(tmp_path: Path) -> None:
    """Task 1: a second run asks for none of the texts that the first one had."""
    texts = ["one", "two", "three", "two"]
    first, second = Model(), Model()
    right(cached(first, tmp_path).embed(texts), first, texts, "four texts, two of them the same")
    right(cached(second, tmp_path).embed(texts), second, texts, "the same texts again")
    again = set(second.asked) & set(texts)
    assert not again, f"given texts that are on disk: {again} was asked again"


def test_only_what_is_new_is_asked(tmp_path: Path) -> None:
    """Task 1: of known and new texts, the new ones are asked, and the order is the caller's."""
    cached(Model(), tmp_path).embed(["one", "two"])
    model, texts = Model(), ["three", "one", "four", "two"]
    right(cached(model, tmp_path).embed(texts), model, texts, f"{texts}, two of them known")
    asked = [text for text in model.asked if text in texts]
    assert sorted(asked) == ["four", "three"], f"expected three and four alone, came {asked}"


def test_the_embedder_is_the_same_but_for_its_call(tmp_path: Path) -> None:
    """Task 1: name and prefixes of the embedder stay."""
    made = cached(Model(), tmp_path)
    got = made.model, made.query_prefix, made.passage_prefix
    assert got == ("model-a", "query: ", "passage: "), f"came back {got}"


def test_E13_another_prefix_is_another_text(tmp_path: Path) -> None:
    """Task 1: a text is kept with its prefix; with another prefix it is asked for."""
    first, second = Model(), Model()
    cached(first, tmp_path).embed(["passage: one", "passage: two"])
    texts = ["query: one", "query: two"]
    right(cached(second, tmp_path).embed(texts), second, texts, "another prefix")


def test_E13_each_model_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Task 1: the vectors of one model are never those of another, both in one folder."""
    texts, one, other = ["one", "two"], Model(), Model(turn=1)
    cached(one, tmp_path, "model-a").embed(texts)
    right(cached(other, tmp_path, "model-b").embed(texts), other, texts, "a second model")
    third = Model()
    right(cached(third, tmp_path, "model-a").embed(texts), one, texts, "the first model again")
    assert not set(third.asked) & set(texts), f"the first model was asked again: {third.asked}"
    files = len([path for path in tmp_path.rglob("*") if path.is_file()])
    assert files == 2, f"given two models: expected two files, came {files}"


@pytest.mark.parametrize("name", ["org/model:latest", "../model", "a\\b", "m" * 400, "  ", "ü"])
def test_a_model_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Task 1: whatever the model's name, its file lies in the folder."""
    folder = tmp_path / "deep" / "vectors"
    cached(Model(), folder, name).embed(["one", "two"])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    inside = [path.parent == folder for path in files]
    assert inside == [True], f"given {name[:20]!r}: expected one file in {folder}, came {files}"


def test_a_single_text_is_not_kept(tmp_path: Path) -> None:
    """Task 2: one text alone is a request: it goes to the model and not to the disk."""
    model = Model()
    embed = cached(model, tmp_path).embed
    for _ in range(2):
        right(embed(["a secret"]), model, ["a secret"], "one text")
    assert model.asked == ["a secret"] * 2, f"expected it asked twice, alone, came {model.asked}"
    files = list(tmp_path.rglob("*"))
    assert not files, f"given one text: expected no file, came {files}"


def test_E13_a_model_that_changed_behind_its_name_is_found_out(tmp_path: Path) -> None:
    """Task 3: when the canary's vector has changed, nothing in the file is believed."""
    cached(Model(), tmp_path).embed(["one", "two"])
    other, texts = Model(turn=1), ["one", "two", "three"]
    right(cached(other, tmp_path).embed(texts), other, texts, "another model by the same name")
    last = Model(turn=1)
    right(cached(last, tmp_path).embed(texts), last, texts, "the other model again")
    assert not set(last.asked) & set(texts), f"expected the new vectors kept, came {last.asked}"


def test_E13_a_model_with_other_dimensions_is_found_out(tmp_path: Path) -> None:
    """Task 3: so is a model whose vectors have another length."""

    class Longer(Model):
        def vector(self, text: str) -> list[float]:
            return [*super().vector(text), 0.5]

    cached(Model(), tmp_path).embed(["one", "two"])
    other, texts = Longer(), ["two", "three"]
    right(cached(other, tmp_path).embed(texts), other, texts, "a model with four dimensions")


def test_E13_the_noise_of_another_batch_is_no_other_model(tmp_path: Path) -> None:
    """Task 3: a canary that differs in the fifth decimal alone is the same model's."""
    cached(Model(), tmp_path).embed(["one", "two"])
    model = Model(turn=1e-5)
    cached(model, tmp_path).embed(["one", "two", "three"])
    again = set(model.asked) & {"one", "two"}
    assert not again, f"given a model with noise of 1e-5: {again} was asked again"


def spoil(raw: bytes) -> dict[str, bytes]:
    middle = len(raw) // 2
    return {
        "empty": b"",
        "text": b"not vectors at all\n" * 20,
        "half": raw[:middle],
        "a byte short": raw[:-1],
        "a byte wrong": raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :],
    }


# NumPy may leave a damaged file open until it is collected; that is not what is tested here.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", spoil(b"01"))
def test_a_damaged_file_is_no_file(tmp_path: Path, kind: str) -> None:
    """Task 4: a file that cannot be read, whatever is in it, costs time and nothing else."""
    texts = ["one", "two", "three"]
    cached(Model(), tmp_path).embed(texts)
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    path.write_bytes(spoil(path.read_bytes())[kind])
    model = Model()
    right(cached(model, tmp_path).embed(texts), model, texts, f"a file that is damaged: {kind}")
    last = Model()
    right(cached(last, tmp_path).embed(texts), last, texts, "the file written anew")
    assert not set(last.asked) & set(texts), f"expected a whole file, but asked {last.asked}"


def test_a_folder_that_cannot_be_written_to_costs_only_time(tmp_path: Path) -> None:
    """Task 4: where nothing can be written, the vectors come from the model, each time."""
    (folder := tmp_path / "vectors").mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # root may write anywhere but here
        folder = Path("/proc/no/such/folder")
    texts = ["one", "two"]
    for _ in range(2):
        model = Model()
        right(
            cached(model, folder).embed(texts), model, texts, "a folder that cannot be written to"
        )
        assert set(texts) <= set(model.asked), f"expected both asked, came {model.asked}"


def test_many_at_once_never_leave_half_a_file(tmp_path: Path) -> None:
    """Task 4: the file is replaced in one step, so another reader sees all of it or the old."""
    texts = [f"text {i}" for i in range(40)]
    cached(Model(), tmp_path).embed(texts[:10])
    bad: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            model = Model()
            cached(model, tmp_path).embed(texts[:10])
            bad.extend(set(model.asked) & set(texts))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for count in range(11, 41):
            cached(Model(), tmp_path).embed(texts[:count])
    finally:
        done.set()
        reader.join()
    assert not bad, f"while the file was written, a reader lost {sorted(set(bad))[:3]}"
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert len(left) == 1, f"expected one file and no temporary one, came {left}"


def test_E13_a_model_that_changed_is_found_out_when_nothing_is_new(tmp_path: Path) -> None:
    """Task 3: the canary is asked for each time, also when every text is on disk."""
    texts = ["one", "two"]
    cached(Model(), tmp_path).embed(texts)
    other = Model(turn=1)
    right(cached(other, tmp_path).embed(texts), other, texts, "another model, and nothing new")


def test_a_file_in_the_place_of_the_folder_costs_only_time(tmp_path: Path) -> None:
    """Task 4: so does a folder that cannot be, because a file has its name."""
    (path := tmp_path / "vectors").write_text("mine")
    model, texts = Model(), ["one", "two"]
    right(cached(model, path).embed(texts), model, texts, "a file in the folder's place")
    assert path.read_text() == "mine", "expected the file untouched"


def test_any_byte_may_be_wrong(tmp_path: Path) -> None:
    """Task 4: whichever byte is another, the vectors are right and nothing is raised."""
    texts = ["one", "two"]
    cached(Model(), tmp_path).embed(texts)
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    raw = path.read_bytes()
    for place in range(0, len(raw), 7):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :])
        model = Model()
        right(cached(model, tmp_path).embed(texts), model, texts, f"byte {place} wrong")
