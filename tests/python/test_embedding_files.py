# SPDX-License-Identifier: Apache-2.0
"""What files beside a model change in bertcl.SentenceTransformer: letters, token types and prompts."""
import json
import unittest

import numpy as np
import onnx
from encoder_model import write_encoder
from package import bertcl
from support import scratch

TEXT = "The ENGINE was made by Ada"


class EmbeddingFilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self) / "encoder"
        write_encoder(self.folder)
        modules = [{"type": "sentence_transformers.models.Transformer", "path": ""},
                   {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
        (self.folder / "modules.json").write_text(json.dumps(modules))
        (self.folder / "1_Pooling").mkdir()
        self.write("1_Pooling/config", pooling_mode="mean")

    def write(self, name, **settings):
        (self.folder / f"{name}.json").write_text(json.dumps(settings))

    def make(self, **options):
        return bertcl.SentenceTransformer(self.folder, device="cpu", **options)

    def test_texts_are_lower_case_where_the_files_say_so(self):
        self.write("tokenizer_config", do_lower_case=False)
        cased = self.make()
        self.write("sentence_bert_config", do_lower_case=True)
        made = self.make()
        for call in (lambda model, text: model.encode(text).tolist(),
                     lambda model, text: model.tokenize([text])["input_ids"].tolist()):
            self.assertEqual(call(made, TEXT), call(cased, TEXT.lower()))
            self.assertNotEqual(call(made, TEXT), call(cased, TEXT))
            self.assertEqual(call(made, "ENGINE [SEP] ΟΔΟΣ"), call(cased, "engine [SEP] οδοσ"),
                             "special tokens are kept, and a last sigma is as any")

    def test_token_types_are_given_where_tokenizer_and_model_have_them(self):
        with_types = ["attention_mask", "input_ids", "token_type_ids"]
        self.assertEqual(sorted(self.make().tokenize(TEXT)), with_types)
        self.write("tokenizer_config", model_input_names=with_types[:2])
        self.assertEqual(sorted(self.make().tokenize(TEXT)), with_types[:2])
        self.write("tokenizer_config", model_input_names=with_types)
        self.assertEqual(sorted(self.make().tokenize(TEXT)), with_types)
        model = onnx.load(self.folder / "model.onnx")
        (types,) = (each for each in model.graph.input if each.name == "token_type_ids")
        model.graph.input.remove(types)
        zero = onnx.numpy_helper.from_array(np.array([0]))
        for node in (onnx.helper.make_node("ConstantOfShape", ["extents"], ["token_type_ids"], value=zero),
                     onnx.helper.make_node("Shape", ["input_ids"], ["extents"])):
            model.graph.node.insert(0, node)
        onnx.save(model, self.folder / "model.onnx")
        self.assertEqual(sorted(self.make().tokenize(TEXT)), with_types[:2])

    def test_the_default_prompt_is_that_of_the_files_or_the_argument(self):
        plain = self.make()

        def check(model, prompt_used, **options):
            np.testing.assert_array_equal(model.encode(TEXT, **options), plain.encode(prompt_used + TEXT))

        self.assertFalse(np.array_equal(plain.encode(TEXT), plain.encode("Find: " + TEXT)))
        self.write("config_sentence_transformers", prompts={"find": "Find: ", "seek": "Look for: ", "none": ""},
                   default_prompt_name="find")
        by_file = self.make()
        check(by_file, "Find: ")
        check(by_file, "Look for: ", prompt_name="seek")
        check(by_file, "", prompt_name="none")
        check(by_file, "What: ", prompt="What: ")
        check(self.make(default_prompt_name="seek"), "Look for: ")
        replaced = self.make(prompts={"find": "Given: "})
        check(replaced, "Given: ")
        check(replaced, "Look for: ", prompt_name="seek")
        with self.assertRaisesRegex(ValueError, r"unknown prompt 'gone' \(choose from find, none, seek\)"):
            self.make(default_prompt_name="gone")
