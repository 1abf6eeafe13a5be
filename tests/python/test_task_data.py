# SPDX-License-Identifier: Apache-2.0
"""Data of training: windows of questions, texts with labels, and the classes that labels mean."""
import argparse
import csv
import io
import json
import re
import unittest

import numpy as np
import onnx
from support import CALIBRATION, MODEL, SAMPLE, VOCABULARY, bertcl, needs, scratch

needs("torch")

from tokenizer_makers import xlm_roberta

import class_labels
import data_files
import squad_data
import task_data


class Windows(unittest.TestCase):
    def test_are_those_of_the_engine(self):
        """As many windows and tokens as `bertcl eval` counts, at sizes that divide contexts."""
        report = json.loads(bertcl("eval", MODEL, "--data", SAMPLE, "--json", "-", "--max-seq-length", 96,
                                   "--doc-stride", 32, "--limit", 30).stdout)["models"][0]
        questions = squad_data.load_questions(SAMPLE, 30)
        windows = squad_data.make_windows(questions, squad_data.load_tokenizer(VOCABULARY), 96, 32)
        self.assertEqual(len(windows), report["features"])
        self.assertEqual(sum(len(w.ids) for w in windows), report["tokens"])
        self.assertGreater(len(windows), len(questions))

    def test_text_is_normalized_as_the_configuration_says(self):
        def tokens(**config):
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
            options = argparse.Namespace(vocab=None, cased=False)
            return task_data.tokenizer_of(options, folder).encode("Café 中国").tokens[1:-1]
        folder = scratch(self)
        (folder / "vocab.txt").write_text("\n".join(
            ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "café", "Café", "中", "国", "中国")))
        self.assertEqual(tokens(), ["cafe", "中", "国"])
        self.assertEqual(tokens(strip_accents=False), ["café", "中", "国"])
        self.assertEqual(tokens(do_lower_case=False), ["Café", "中", "国"])
        self.assertEqual(tokens(tokenize_chinese_chars=False), ["cafe", "中国"])

    def test_have_the_special_tokens_of_the_tokenizer(self):
        """A context that fits: the pair as the tokenizer encodes it, of RoBERTa and of BERT."""
        path = scratch(self) / "tokenizer.json"
        xlm_roberta(["Who wrote it ?", "Ada wrote it in 1843 , they say ."]).save(str(path))
        options = argparse.Namespace(vocab=None, cased=False)
        of_roberta = task_data.tokenizer_of(options, path.parent)
        options.cased = True
        with self.assertRaisesRegex(ValueError, "--cased goes with a vocab.txt"):
            task_data.tokenizer_of(options, path.parent)
        for tokenizer in of_roberta, squad_data.load_tokenizer(VOCABULARY):
            context = "Ada wrote it in 1843 , they say ."
            question = squad_data.Question("a", "Who wrote it ?", context, [("they", context.find("they"))])
            window, = squad_data.make_windows([question], tokenizer)
            expected = tokenizer.encode(question.text, context)
            self.assertEqual((window.ids, window.types), (expected.ids, expected.type_ids))
            logits = np.zeros((2, len(window.ids)))
            logits[0, window.labels[0]] = logits[1, window.labels[1]] = 1
            logits[:, -1] = 9  # of a special token
            self.assertEqual(squad_data.answer(question, [window], [logits], False), "they")

    def test_of_lines(self):
        folder = scratch(self)
        (folder / "a.txt").write_text("the cat\n\n the dog\n")
        options = argparse.Namespace(data=[f"{folder}/a.txt"], limit=None, vocab=None, cased=False, max_length=9)
        self.assertEqual([(len(e.ids), e.labels) for e in task_data.load(options, MODEL.parent)], [(4, ())] * 2)
        options.data.append("b.tsv")
        with self.assertRaisesRegex(ValueError, "cannot be mixed"):
            task_data.load(options, MODEL.parent)

    def test_lines_end_in_line_feeds(self):
        """Not where str.splitlines() ends them."""
        folder = scratch(self)
        (folder / "a.txt").write_bytes("\ufeffone\u2028two\u0085three\r\nfour\x0bfive\n \n".encode())
        options = argparse.Namespace(data=[f"{folder}/a.txt"], limit=None, vocab=None, cased=False, max_length=9)
        self.assertEqual(len(task_data.load(options, MODEL.parent)), 2)
        for content, problem in ((b"a\nb\xe9\n", "a.txt:2: invalid UTF-8 at byte 3 of 5; expected UTF-8 text"),
                                 (b"a\rb\r", "end in CR alone"),
                                 ("ab\n".encode("utf-16-le"), "looks like UTF-16"), ("é\n".encode("utf-16"), "looks like UTF-16"),
                                 (b" \n", "no texts")):
            (folder / "a.txt").write_bytes(content)
            with self.subTest(problem), self.assertRaisesRegex(ValueError, f"a.txt:.*{problem.removeprefix('a.txt:')}"):
                task_data.load(options, MODEL.parent)

    def test_forms_are_those_of_the_engine(self):
        """As tests/text/test_data_file.cpp has them."""
        for form, contents in {
                "LINES": ["", " \n", "a,b\n", "a\r", "[", "[]", "[1]", '["a"]', "{", "{}", "{}\tO\n"],
                "JSON_LINES": ['{"version":1,"text":"a"}', '{"data": "x", "text": "a"}', '{"data": "x", "text"',
                               r'{"version":1,"text":"\"data\": ["}', '{"title": "a", "data": []}', '\ufeff{"a": 1}',
                               ' \n {"text": "a"\n{', '{"text": 1},\n', '{ }\n{"text": 1}', '{"data": 1}\n{"data": 2}'],
                "SQUAD": ['{"version": "1.1", "data": [{}]}', '{"data":[]}', '{"version": 2, "data" : [',
                          '\n{"data": [\n]}',
                          '{"title": 1,\n"data": []', '{\r"data":\r[]}', '{"version": 1, "more": {"data": [1]}}'],
                "DOCUMENT": ['{"data": 1}', '{ "data": {}}\n', '{\n"text": 1}', '{"text": 1,\n"label": 1}'],
                "ARRAY": ["[{}]", ' [ { "a"', '[\n{"data": []}]'], "ARRAY_OF_STRINGS": ['[\n"a"', '[ \r\n "a"]'],
                "CARRIAGE_RETURNS": ["a\rb", "{a}\rb\r", '[\r"a"]']}.items():
            for content in contents:
                with self.subTest(content):
                    self.assertEqual(data_files.form_of("a.txt", content).name, form)
        for content, form in (("{", "DOCUMENT"), ("{\r}", "DOCUMENT"), ("[", "ARRAY"), ('["a"]', "ARRAY_OF_STRINGS"),
                              ('{"text": 1}\n', "JSON_LINES"), ("a\tb\n", "LINES")):
            self.assertEqual(data_files.form_of("a.JSON", content).name, form)
        self.assertEqual([data_files.form_of(f"a.{suffix}", "a").name for suffix in ("CSV", "tsv")], ["COMMAS", "TABS"])

    def test_of_json_lines(self):
        """By their content: a text of JSON is not what `bertcl` would run."""
        path = scratch(self) / "a.txt"

        def load(content, limit=None):
            path.write_text(content)
            options = argparse.Namespace(data=[str(path)], limit=limit, vocab=None, cased=False, max_length=9)
            return [(len(e.ids), e.labels, e.types[-1]) for e in task_data.load(options, MODEL.parent)]

        lines = ('{"text": "the cat", "label": "x"}\n\n{"sentence1": "a", "text_pair": "b"}\n{"text": " "}\n'
                 '{"id": 3, "sentence": "one", "text_pair": null}\n')
        self.assertEqual(load("\ufeff \n" + lines), [(4, (), 0), (5, (), 1), (3, (), 0)])
        self.assertEqual(load(lines, 1), [(4, (), 0)])
        for line in '{"data": "x", "text": "a"}', '{"version": 2, "text": "a"}':
            self.assertEqual(load(line), [(3, (), 0)])
        for content in "{the} cat\n", "[the cat]\n", '["the cat"]\n', "{}", "the {\n":
            with self.subTest(content):
                self.assertEqual(len(load(content)), 1)
        for content, problem in (
                ('{}\n{"text": "a"}', 'a.txt:1: expected an object with "text"'),
                ('{"text": "a"}\n{"text": 5}', 'a.txt:2: expected "text" and "text_pair" as strings'),
                ('{"text": "a"}\n[]', 'a.txt:2: expected an object with "text"'),
                ('{"text": "a"\n{"text": "b"}', "a.txt:1: invalid JSON"), ('{"text": " "}\n', "a.txt: no texts"),
                ('{"text": "a", "sentence": "b"}', "a.txt:1: members .text. and .sentence. both give the text"),
                ('{\n "text": "a"\n}', "a.txt: is a single JSON document; write one object a line .jq -c . FILE"),
                ('{"data": []}', "a.txt: is a single JSON document"), (SAMPLE.read_text(), "a file in SQuAD format is named .json"),
                ('[{"text": "a"}]', "a.txt: is a JSON array; write one object a line .jq -c '...' FILE"),
                ('[\n"a"]', "a.txt: is a JSON array; write one text a line .jq -r '...' FILE")):
            with self.subTest(content=content[:50]), self.assertRaisesRegex(ValueError, problem):
                load(content)

    def test_questions_of_json_lines(self):
        path = scratch(self) / "a.json"

        def load(*nodes, limit=None):
            path.write_text("".join(json.dumps(node) + "\n\n" for node in nodes))
            return [(q.id, q.answers, q.version_2) for q in squad_data.load_questions(path, limit)]

        of_lists = {"question": "b?", "context": "c d", "answers": {"text": ["c", "d"], "answer_start": [0, 2]}}
        of_objects = {**of_lists, "id": 7, "answers": [{"text": "d", "answer_start": 2}]}
        no_answer = {**of_lists, "id": "n", "answers": {"text": [], "answer_start": []}}
        self.assertEqual(load(of_lists, of_objects), [("0", [("c", 0), ("d", 2)], False), ("7", [("d", 2)], False)])
        self.assertEqual(load(of_lists, no_answer, limit=1), [("0", [("c", 0), ("d", 2)], True)])
        for changes, problem in (({"question": 5}, "a.json:3: question is not a string"), ({"id": "0"}, "already used in line 1"),
                                 ({"context": None}, "a.json:3: context is not a string"), ({"id": 0.5}, "a.json:3: id is not"),
                                 ({"answers": {"text": ["c"]}}, "a.json:3: answers.answer_start is missing"),
                                 ({"answers": {"text": ["c"], "answer_start": []}}, "a.json:3: answers: expected as many"),
                                 ({"answers": [{"text": "c"}]}, r"a.json:3: answers\[0\].answer_start is missing")):
            with self.subTest(problem), self.assertRaisesRegex(ValueError, problem):
                load(of_lists, {**of_lists, **changes})

    def test_labels_and_best_windows(self):
        tokenizer = squad_data.load_tokenizer(VOCABULARY)
        text = "one two three four five six seven eight nine ten eleven twelve"
        question = squad_data.Question("a", "which number?", text, [("seven eight", text.find("seven"))])
        windows = squad_data.make_windows([question], tokenizer, length=13, stride=3)
        self.assertEqual([w.most_context for w in windows][0], [True] * 5 + [False] * 2)
        for token in range(12):  # each token has one window
            shown = [w.most_context[token - 3 * i] for i, w in enumerate(windows)
                     if 0 <= token - 3 * i < len(w.most_context)]
            self.assertEqual(sum(shown), 1)
        for window in windows:
            first, last = window.labels
            if first:
                ids = window.ids[first:last + 1]
                self.assertEqual(tokenizer.decode(ids), "seven eight")
        self.assertEqual([bool(w.labels[0]) for w in windows], [False, True, True])

    def test_of_several_files(self):
        def load(*files):
            options = argparse.Namespace(data=[str(f) for f in files], limit=8, vocab=None, cased=False,
                                         max_length=96, stride=32)
            return [w.ids for w in task_data.load(options, MODEL.parent)]
        self.assertEqual(load(SAMPLE, CALIBRATION), load(SAMPLE) + load(CALIBRATION))
        with self.assertRaisesRegex(ValueError, "cannot be mixed"):
            load(SAMPLE, "texts.tsv")
        folder = scratch(self)
        files = [folder / name for name in ("a.tsv", "b.tsv")]
        files[0].write_text("one\tpos\ntwo\tneg\n")
        files[1].write_text("three\tneutral\nfour\tneg\n")
        options = argparse.Namespace(data=[*map(str, files)], limit=None, vocab=None, cased=False, max_length=9)
        labels = [e.labels for e in task_data.load(options, MODEL.parent)]
        self.assertEqual(labels, [(1,), (0,), (2,), (0,)])

    def test_files_of_questions(self):
        path = scratch(self) / "a.json"

        def load(limit=None, **changes):
            """Of two questions, the first with these members."""
            qas = [{"id": "a", "question": "b?", "answers": [{"text": "c", "answer_start": 0}], **changes},
                   {"id": 2, "question": "b?", "answers": [{"text": "c", "answer_start": 0}]}]
            return write(json.dumps({"data": [{"paragraphs": [{"context": "c d", "qas": qas}]}]}), limit)

        def write(content, limit=None):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            return squad_data.load_questions(path, limit)

        self.assertEqual([(q.id, q.version_2) for q in load()], [("a", False), ("2", False)])
        self.assertEqual([q.version_2 for q in load(is_impossible=False)], [True, True])
        for content in SAMPLE.read_text(), "\ufeff" + SAMPLE.read_text():
            self.assertEqual([q.version_2 for q in write(content, 1)], [True])
        at = "paragraphs[0].qas[0]"
        answer = {"text": "c", "answer_start": "0"}
        for changes, problem in ((dict(answers=[]), f"{at}.answers is empty; only v2.0"), (dict(question=5), "question is not a"),
                                 (dict(answers=[answer]), f"{at}.answers[0].answer_start is not an integer"),
                                 (dict(answers=[{**answer, "text": None}]), "answers[0].text is not a string"),
                                 (dict(is_impossible=0), "is_impossible is not true or false"), (dict(answers=None), "a list"),
                                 (dict(id="2"), "qas[1].id '2' is already used at data[0].paragraphs[0].qas[0]")):
            with self.subTest(problem), self.assertRaisesRegex(ValueError, f"a.json: .*{re.escape(problem)}"):
                load(**changes)
        for content, problem in (("", "invalid JSON"), (b'{"data": "\xe9"}', "invalid UTF-8"), ("[]", "is a JSON array"),
                                 ('{"data": []}', "contains no questions"), ('{"data": 1}', "data is not a list"),
                                 ("3", "expected a JSON object"), ('{"data": ' + "[" * 100000, "invalid JSON"),
                                 ('{"data": [{"paragraphs": [{"context": 1}]}]}', "paragraphs.0..context is not a string"),
                                 ('{"data": [{"paragraphs": [{"qas": []}]}]}', "paragraphs.0..context is missing")):
            with self.subTest(content=content[:50]), self.assertRaisesRegex(ValueError, f"a.json:.*{problem}"):
                write(content)

    def test_the_null_answer_is_of_version_2(self):
        """Also where all of the questions that are read have answers."""
        question = squad_data.Question("a", "b?", "one two", [("two", 4)])
        window = squad_data.Window([1, 2, 3, 4], 1, 3, spans=[(0, 3), (4, 7)], most_context=[True, True])
        logits = np.array([9.0, 0, 1, 0])
        for version_2, f1 in (False, 100), (True, 0):
            question.version_2 = version_2
            self.assertEqual(squad_data.evaluate([question], [window], [(logits, logits)])[0]["f1"], f1)

    def test_scores(self):
        self.assertEqual(squad_data.score("The  Cat!", ["dog", "cat"]), (1, 1))
        self.assertEqual(squad_data.score("a b c d", ["b c x y"])[0], 0)
        self.assertAlmostEqual(squad_data.score("b c d e", ["b c x y"])[1], 0.5)
        self.assertEqual(squad_data.score("", []), (1, 1))
        self.assertEqual(squad_data.score("x", []), (0, 0))


class Labels(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)

    def texts(self, name, content, **options):
        (self.folder / name).write_text(content)
        return task_data.load_texts(self.folder / name, **options)

    def test_columns_and_members_go_by_their_names(self):
        pair = [(["a film", "b"], 1), (["c", "d"], 0)]
        for name, content in (
                ("a.csv", 'text,text_pair,label\n"a film",b,yes\nc,d,no\n'),
                ("b.tsv", "Label\tSentence1\tsentence2\r\nyes\ta film\tb\r\nno\tc\td\r\n"),
                ("c.tsv", "\ufeffid\ttext\tlabel\ttext_pair\n7\ta film\tyes\tb\n8\tc\tno\td\n"),
                ("d.jsonl", '{"text": "a film", "text_pair": "b", "label": "yes"}\n'
                            '{"sentence1": "c", "sentence2": "d", "label": "no"}\n')):
            with self.subTest(name):
                self.assertEqual(self.texts(name, content), (pair, ["no", "yes"]))
        self.assertEqual(self.texts("e.tsv", "id\tsentence\tlabel\n1\tfine\t1\n")[0], [(["fine"], 0)])
        self.assertEqual(self.texts("e.tsv", "review\tlabel\nfine\t1\n")[0], [(["fine"], 0)])
        for header in "Text\tLabel\nfine\t1", "label\ttext\n1\tfine":
            self.assertEqual(self.texts("e.tsv", header)[0], [(["fine"], 0)])
        self.assertEqual(self.texts("e.tsv", "label\t1\nfine\t0\n")[0], [(["label"], 1), (["fine"], 0)])
        for name, header, row in (("e.tsv", "review\tlabel", "fine\t1"), ("e.tsv", "text\tlabels", "fine\t1"),
                                  ("e.csv", "text,label", "fine,1")):
            with self.subTest(header=header):  # the first line that is not blank
                self.assertEqual(self.texts(name, f"\n \r\n{header}\n\n{row}\n")[0], [(["fine"], 0)])
        for name, content, problem in (
                ("f.tsv", "id\tlabel\tx\n1\t1\t\n", "f.tsv:1: the header is id, label, x; expected text or sentence"),
                ("g.tsv", "text\tlabel\na\tb\tc\n", "g.tsv:2: 3 columns, expected 2; a first line names others"),
                ("g.tsv", "a\t1\nb\t\n", "g.tsv:2: the label is empty"),
                ("h.jsonl", '{"text": 5, "label": "no"}', "h.jsonl:1: expected .* as strings"),
                ("i.jsonl", '{"text": "a", "label": ["no"]}', "i.jsonl:1: expected .* number"),
                ("i.jsonl", '{"text": "a", "label": true}', "i.jsonl:1: expected .* number")):
            with self.subTest(name), self.assertRaisesRegex(ValueError, problem):
                self.texts(name, content)

    def test_headers_are_those_of_the_engine(self):
        for name, content in (("a.tsv", "text\tlabels\nfine\tyes\nbad\tno\n"), ("a.TSV", "labels\ttext\nyes\tfine\nno\tbad\n"),
                              ("a.CSV", "text,id,labels\nfine,1,yes\nbad,2,no\n"),
                              ("a.jsonl", '{"text": "fine", "labels": ["yes"]}\n{"text": "bad", "labels": ["no"]}\n')):
            with self.subTest(name):
                self.assertEqual(self.texts(name, content), ([(["fine"], 1), (["bad"], 0)], ["no", "yes"]))
        for name, content, problem in (
                ("a.tsv", "sentence\tclass\na\tb\n", "a.tsv:1: the header is sentence, class; expected text or"),
                ("a.tsv", "id\ttext_pair\na\tb\n", "a.tsv:1: the header is id, text_pair"),
                ("a.csv", "text,category\na,b\n", "a.csv:1: the header is text, category"),
                ("a.csv", "review,label\na,b\n", "a.csv:1: the header is review, label"),
                ("a.tsv", "text\ttext\tlabel\na\tb\tc\n",
                 r"a.tsv:1: columns 1 and 2 both give the text \(text, text\); drop or"),
                ("a.tsv", "text\tlabel\tLabels\na\tb\tc\n",
                 r"a.tsv:1: columns 2 and 3 both give the label \(label, Labels\)"),
                ("a.csv", "text,sentence2,text_pair,label\na,b,c,d\n",
                 r"a.csv:1: columns 2 and 3 both give the second text \(sentence2, text_pair\)"),
                ("a.jsonl", '{"text": "a", "sentence": "b", "label": "c"}',
                 "a.jsonl:1: members 'text' and 'sentence' both give the text; drop or rename one"),
                ("a.jsonl", '{"text": "a", "label": "c", "label": "d"}', "a.jsonl:1: .*'label' is there twice"),
                ("a.jsonl", '{"text": "a", "labels": "c"}', 'a.jsonl:1: expected .*"labels" as a list'),
                ("a.csv", 'text,label\n"a\nb",c\n"d"e,f\n', "a.csv:4: a quote that is not closed, or text after"),
                ("a.csv", 'text,label\n"a,b\n', "a.csv:2: a quote that is not closed"),
                ("a.csv", "text,label\n\na,b,c\n", "a.csv:3: 3 columns"),
                ("a.tsv", "text\tlabels\na\tb\nc\td, e\n", "a.tsv:3: 2 labels, expected one"),
                ("a.tsv", "text\tlabels\na\tb\nc\t\n", "a.tsv:3: no labels, expected one"),
                ("a.jsonl", '{"text": "a", "labels": ["c", "d"]}', "a.jsonl:1: 2 labels, expected one")):
            with self.subTest(name=name, content=content), self.assertRaisesRegex(ValueError, problem):
                self.texts(name, content)

    def test_json_lines_by_their_content(self):
        content = '{"text": "fine", "label": "yes"}\n{"text": "bad\\tfilm, that", "label": "no"}\n'
        for name in "a.tsv", "a.csv", "a.txt", "a.jsonl":
            with self.subTest(name):
                self.assertEqual(self.texts(name, content), ([(["fine"], 1), (["bad\tfilm, that"], 0)], ["no", "yes"]))
                for form in '{\n"text": "a",\n"label": "b"}', '[{"text": "a", "label": "b"}]':
                    with self.assertRaisesRegex(ValueError, f"{name}: is a (single JSON document|JSON array); write one object"):
                        self.texts(name, form)
        self.assertEqual(self.texts("a.tsv", '{a}\tyes\n{"b"}\tno\n')[0], [(["{a}"], 1), (['{"b"}'], 0)])

    def test_several_are_texts_where_no_labels_are_needed(self):
        (self.folder / "a.tsv").write_text("text\tlabels\na\tx, y\nb\t\n")
        options = argparse.Namespace(data=[f"{self.folder}/a.tsv"], limit=None, vocab=None, cased=False, max_length=9)
        self.assertEqual([len(e.ids) for e in task_data.load(options, MODEL.parent)], [3, 3])
        with self.assertRaisesRegex(ValueError, "a.tsv:2: 2 labels"):
            task_data.load(options, MODEL.parent, ["x", "y"])

    def test_tables_of_commas(self):
        """As csv.reader has them, with blanks after a closing quote, too."""
        random = np.random.default_rng(0)
        read = refused = 0
        for _ in range(3000):
            content = "".join(random.choice(list('ab",,\n\n" '), random.integers(1, 20)))
            try:
                found = [row for _, row in data_files.rows_of(content, "a.csv")]
            except ValueError as error:
                self.assertRegex(str(error), "a.csv:.*quote")
                found = None
            try:
                expected = list(csv.reader(io.StringIO(content, newline=""), strict=True))
            except csv.Error:
                if found is not None:
                    self.assertRegex(content, '" +(,|\n|$)')
                refused += 1
                continue
            rows, expected = ([row for row in rows if len(row) > 1 or "".join(row).strip()] for rows in (found, expected))
            self.assertEqual(rows, expected, content)
            read += 1
        self.assertGreater(min(read, refused), 300)
        self.assertEqual(list(data_files.rows_of('"a" ,b\n\n"c\n""d"\t,\r\nx,', "x")),
                         [(1, ["a", "b"]), (3, ['c\n"d', "\r"]), (5, ["x", ""])])

    def test_large_cells(self):
        self.assertEqual(len(self.texts("a.csv", f'text,label\n"{"a " * 99999}",b\n')[0][0][0][0]), 199997)

    def test_are_those_of_the_model(self):
        for names, labels, expected in ((["contra", "entail", "neutral"], "neutral entail", [2, 1]),
                                        (["Yes", "no"], "NO yes", [1, 0]), (["POSITIVE", "NEGATIVE"], "neg 1", [1, 0]),
                                        (["a", "b", "c"], "2 0", [2, 0]), (["a", "b"], "A 1 b", [0, 1, 1]),
                                        (["a", "A", "b"], "A B", [1, 2]), (["1", "0x", "b"], "1 b", [0, 2])):
            rows, found = self.texts("x.tsv", "".join(f"t\t{label}\n" for label in labels.split()), names=names)
            self.assertEqual(([label for _, label in rows], found), (expected, names))
        with self.assertRaisesRegex(ValueError, "x.tsv: the label 'd' is unknown .choose from a, b"):
            self.texts("x.tsv", "t\td\nt\tB\nt\t0\n", names=["a", "b"])
        with self.assertRaisesRegex(ValueError, "x.tsv: the label '0' is unknown .choose from 1, b"):
            self.texts("x.tsv", "t\t0\nt\tb\n", names=["1", "b"])

    def test_names_of_classes_come_from_the_model(self):
        model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
        path = self.folder / "model.onnx"
        onnx.save(model, path)
        self.assertIsNone(class_labels.names_of(path))
        for labels, expected in (({"0": "LABEL_0", "1": "LABEL_1"}, None), ({"1": "a", "0": "b"}, ["b", "a"]),
                                 ({"0": "LABEL_1", "1": "LABEL_0"}, ["LABEL_1", "LABEL_0"])):
            (self.folder / "config.json").write_text(json.dumps({"id2label": labels}))
            self.assertEqual(class_labels.names_of(path), expected)
            self.assertEqual(class_labels.names_of(self.folder), expected)
        model.metadata_props.add(key="bertcl.classes", value='["x", "y"]')
        onnx.save(model, path)
        self.assertEqual(class_labels.names_of(path), ["x", "y"])
