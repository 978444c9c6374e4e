"""What is told of a server that died: the error that came first, never the frames of a traceback."""

import pytest

from nilometer.engines.last_words import last_words

XLLAMACPP = """\
0.00.000.286 I srv          init: initializing ...
0.00.002.688 W srv          init: security: no API key is set, invalid origins are not refused
0.00.008.436 I srv    load_model: loading model '/tmp/bad.gguf'
0.00.008.521 E gguf_init_from_reader: invalid magic characters: '????', expected 'GGUF'
0.00.008.618 E llama_model_load: error loading model: llama_model_loader: failed to load model from /tmp/bad.gguf
0.00.008.678 E gguf_init_from_reader: invalid magic characters: '????', expected 'GGUF'
0.00.008.692 E srv    load_model: failed to load model, '/tmp/bad.gguf'
0.00.008.693 I srv    operator(): operator(): cleaning up before exit...
Traceback (most recent call last):
  File "/x/xllamacpp_server.py", line 165, in <module>
    sys.exit(main(sys.argv[1:]))
             ^^^^^^^^^^^^^^^^^^
RuntimeError: Failed to init server, please check the input params.
"""
LLAMA_SERVER = """\
build: 4500 (abc) with cc for x86_64-linux-gnu
main: loading model
llama_model_load: error loading model: tensor 'blk.0.attn_q.weight' data is not within the file bounds
llama_model_load_from_file: failed to load model
main: exiting due to model loading error
"""
PYTHON = """\
loading
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    import nothing
ModuleNotFoundError: No module named 'nothing'
"""


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            XLLAMACPP,
            "gguf_init_from_reader: invalid magic characters: '????', expected 'GGUF' | "
            "llama_model_load: error loading model: llama_model_loader: failed to load model from /tmp/bad.gguf",
        ),
        (
            LLAMA_SERVER,
            "llama_model_load: error loading model: tensor 'blk.0.attn_q.weight' data is not within the file bounds | "
            "llama_model_load_from_file: failed to load model",
        ),
        (PYTHON, "loading | ModuleNotFoundError: No module named 'nothing'"),
        ("one\n\n two\nthree\nfour\nfive\n", "two | three | four | five"),
        ("error: " + "x" * 500, "error: " + "x" * 153),
        ("", ""),
    ],
)
def test_what_a_log_says_of_an_end(log: str, told: str) -> None:
    assert last_words(log) == told
