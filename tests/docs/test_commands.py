# SPDX-License-Identifier: Apache-2.0
"""The commands in the documents: those of the task pages run, the others have only options that exist."""
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import onnx
from pages import BUILD, PAGES, ROOT, blocks, commands, spans

BERTCL = BUILD / "bertcl"
RUN = {"README.md", "json.md", "index.md", "own-model.md", "quantization-guide.md", "devices.md", "deploy.md",
       "environment.md", "embeddings.md"}
OURS = ("tools", "bench", "tests", "examples")  # folders of scripts
DEFAULT = "models/minilm-l6-squad"


def split(line):
    """The simple commands of a line: words, without variables set before them and without comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words = []
    try:
        for word in lexer:
            if set(word) <= set("|;&"):
                yield words
                words = []
            elif words or not re.fullmatch(r"[A-Z_]+=.*", word):
                words.append(word)
    except ValueError:  # a quote of a sentence, not of the shell
        return
    yield words


@functools.cache
def help_of(command):
    """None: there is no such command."""
    if command and command not in re.findall(r"^  ([a-z-]+) +[A-Z]", help_of(""), flags=re.MULTILINE):
        return None
    for option in ("--help-all", "--help"):
        done = subprocess.run([BERTCL, *command.split(), option], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(f"bertcl {command} --help: {done.stderr}")


def option_names(text):
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", text))


@functools.cache
def script_text(path):
    """The script, the scripts that it names, and the modules that it imports from its folder."""
    text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
    others = [ROOT / name for name in re.findall(r"[\w/]+(?:\.py|/\w+)", text) if name.startswith(OURS)]
    others += [(ROOT / path).with_name(f"{name}.py")
               for name in re.findall(r"^(?:from|import) (\w+)", text, flags=re.MULTILINE)]
    return text + "".join(file.read_text(encoding="utf-8", errors="replace")
                          for file in sorted(set(others)) if file.is_file())


def complaint(words):
    """What is wrong with a command of this project, or None."""
    if not words:
        return None
    program, arguments = words[0], words[1:]
    options = [w.split("=")[0] for w in arguments if re.match(r"--?[a-zA-Z]", w)]
    if program in ("bertcl", "build/bertcl"):
        if not arguments or arguments[0].startswith("-"):
            known, where = option_names(help_of("")), "bertcl"
        elif not re.fullmatch(r"[a-z]+(-[a-z]+)*", arguments[0]):
            return None  # a place-holder
        else:
            text = help_of(arguments[0])
            if text is None:
                return f"bertcl has no command {arguments[0]}"
            known, where = option_names(text), f"bertcl {arguments[0]}"
    elif program.startswith("build/") or program.endswith("/") or program.split("/")[0] not in OURS or "/" not in program:
        return None
    elif not (ROOT / program).is_file():
        return f"{program} does not exist"
    elif program == "tools/test":  # passes options to ctest
        return None
    else:
        known, where = option_names(script_text(program)), program
    unknown = [o for o in options if o not in known and o != "--help"]
    return f"{where} has no option {', '.join(unknown)}" if unknown else None


def complaints(lines):
    for place, line in lines:
        for words in split(line.split("  #")[0]):
            if what := complaint(words):
                yield f"{place}: {what}"


def lines_of(page):
    for block in blocks(page):
        for number, line in commands(block):
            yield f"{page.name}:{number}", line
    for number, span in spans(page):
        if span.startswith(("bertcl ", "build/bertcl ", *(f"{folder}/" for folder in OURS))) and " " in span:
            yield f"{page.name}:{number}", span


def tiny(source, count):
    """A SQuAD file of the first questions of `source`."""
    data = json.loads((ROOT / "data" / source).read_text(encoding="utf-8"))
    paragraph = data["data"][0]["paragraphs"][0]
    paragraph["qas"] = paragraph["qas"][:count]
    data["data"] = [{"title": "tiny", "paragraphs": [paragraph]}]
    return json.dumps(data)


def make_folder(folder):
    """What the pages call my-model, train-v1.1.json and so on: the default model and few questions."""
    for name in ("models", "tools", "bench", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").mkdir()
    (folder / "build" / "bertcl").symlink_to(BERTCL)
    (folder / "data").mkdir()
    for name, source in (("train-v1.1.json", "calibration.json"), ("dev-v1.1.json", "sample-v2.0.json"),
                         ("data/calibration.json", "calibration.json"),
                         ("data/sample-v2.0.json", "sample-v2.0.json")):
        (folder / name).write_text(tiny(source, 2), encoding="utf-8")
    for name in ("my-model", "build/minilm-l6-squad-int8"):
        (folder / name).mkdir()
        for file in (ROOT / DEFAULT).iterdir():
            (folder / name / file.name).symlink_to(file)


def make_vectors(folder):
    """What embeddings.md calls minilm, and its data: the encoder of the default model."""
    minilm = folder / "minilm"
    (minilm / "1_Pooling").mkdir(parents=True)
    model = onnx.load(ROOT / DEFAULT / "model.onnx")
    nodes = model.graph.node
    head = next(i for i, node in enumerate(nodes) if "qa_outputs" in node.output[0])
    hidden = onnx.helper.make_tensor_value_info(nodes[head].input[0], onnx.TensorProto.FLOAT, ["batch", "seq", 384])
    del nodes[head:], model.graph.output[:]
    model.graph.output.append(hidden)
    onnx.save(model, minilm / "model.onnx")
    (minilm / "vocab.txt").symlink_to(ROOT / DEFAULT / "vocab.txt")
    (minilm / "modules.json").write_text(json.dumps([
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in (("", "Transformer"), ("1_Pooling", "Pooling"))]))
    (minilm / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "texts.txt").write_text("A cat sleeps.\nStocks fell.\n")
    (folder / "stsb-en-test.csv").write_text("A cat sleeps.,A cat rests.,4\nA cat sleeps.,Stocks fell.,0\n")


def run_page(page):
    """Runs the blocks of a page in their order; the page's failure, or None."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_folder(folder)
        if page.name == "embeddings.md":
            make_vectors(folder)
        script = ["set -euo pipefail", "optimum-cli() { :; }; hf() { :; }"]  # their models are there already
        for block in blocks(page):
            for number, line in commands(block) if not block.not_run else ():
                script += [f"echo '{page.name}:{number}' >&2", line]
        if len(script) == 2:
            return f"{page.name}: has no command to run"
        done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, capture_output=True,
                              text=True, env=dict(os.environ, BERTCL_TUNING="off"))
    return f"exit code {done.returncode}:\n{done.stderr[-800:]}" if done.returncode else None


class Commands(unittest.TestCase):
    def test_commands_and_options_exist(self):
        lines = [line for page in PAGES for line in lines_of(page)]
        self.assertGreater(len(lines), 100)
        self.assertEqual(list(complaints(lines)), [])

    def test_what_does_not_exist_is_found(self):
        for line in ("bertcl evaluate x", "build/bertcl eval x --nonsense", "tools/absent --x",
                     "A=b build/bertcl eval x -z", "echo x | bertcl run m --nonsense", "bench/compare --nonsense",
                     "bertcl eval x && bertcl bench --nonsense=3"):
            with self.subTest(line):
                self.assertEqual(len(list(complaints([("here", line)]))), 1)

    def test_task_pages_run(self):
        for page in PAGES:
            if page.name in RUN:
                with self.subTest(page.name):
                    self.assertIsNone(run_page(page))

    def test_a_page_that_fails_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            page = pathlib.Path(name) / "page.md"
            page.write_text("# Page\n\n    build/bertcl devices --nonsense\n")
            self.assertRegex(run_page(page), "exit code 2(.|\n)*page.md:3")
            page.write_text("# Page\n\n    true\n\n<!-- not run: a reason -->\n\n    build/bertcl devices --nonsense\n")
            self.assertIsNone(run_page(page))
            page.write_text("# Page\n\n<!-- not run: a reason -->\n\n    build/bertcl devices --nonsense\n")
            self.assertRegex(run_page(page), "has no command")
