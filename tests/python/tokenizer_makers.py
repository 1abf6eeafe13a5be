# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the models that bertcl reads, trained on given texts, and random texts for them."""
import pathlib
import random
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers,
                        processors, trainers)

try:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
except ImportError:
    sentencepiece = None

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
METASPACE = "\u2581"

# Characters that every part of a tokenizer treats in its own way.
NOTABLE = ("\u00ad\u0130\u0131\u00df\u03a3\u03c2\u0301\u0308\u0323\u0345\u0390\u1100\u1161\u11a8\uac00\uac01"
           "\u0958\u1e9b\u1eb6\u2126\u212b\ufb01\uff21\uff71\uff9e\u3000\u2028\u2029\u0085\u00a0\u2003\u200b\u200c"
           "\u200d\u200e\ufeff\ufffd\u2581\u0120\u4e00\u3400\U00020000\U0002b820\U0002b920\u3042\u30ab\uff65"
           "\u0e01\u0e33\u0915\u094d\u0937\u093f\u06dd\u0600\u166d\u1734\U0001f468\U0001f469\U0001f467"
           "\U0001f3fd\ufe0f\u20e3\U0001f1e9\U0001f1ea\U000e0067\U000e007f\U0001d400\u2460\u00bd\u0664"
           "\t\n\r\v\f\x00\x01\x1c\x1f\x7f\x9f\ue000\U000f0000\U0010fffe\ufdd0 '\"[]<>#_-.,;0129aZ")


def random_character(generator):
    """Of any plane. Not what a version of Unicode may have added since Python's."""
    kind = generator.random()
    if kind < 0.35:
        return generator.choice(NOTABLE)
    if kind < 0.6:
        return chr(generator.randrange(0x20, 0x7F))
    while True:
        c = chr(generator.choice([generator.randrange(0x80, 0x3000), generator.randrange(0x3000, 0x10000),
                                  generator.randrange(0x10000, 0x20000),
                                  generator.randrange(0x20000, 0x110000)]))
        if unicodedata.category(c) == "Cs":
            continue
        if unicodedata.category(c) != "Cn" or 0x40000 <= ord(c) < 0xE0000:
            return c


def random_texts(count, words=("the", "I'm", "don't ", " we've", "caf\u00e9", "e\u0301", "<mask>", "[MASK]",
                               " <s>", "</s> ", "  ", "\r\n", "New York", "3.14", "<new>", "Stra\u00dfe")):
    generator = random.Random(7)
    return ["".join(generator.choice(words) if generator.random() < 0.2 else random_character(generator)
                    for _ in range(generator.randrange(30))) for _ in range(count)]


def template(begin, end, pair_type=1):
    between = [end] if pair_type else [end, end]
    pair = " ".join([f"{begin}:0", "$A:0", *[f"{e}:0" for e in between], f"$B:{pair_type}",
                     f"{end}:{pair_type}"])
    return f"{begin} $A {end}", pair


def with_template(tokenizer, begin, end, pair_type=1):
    single, pair = template(begin, end, pair_type)
    ids = [(token, tokenizer.token_to_id(token)) for token in (begin, end)]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    return tokenizer


def bert(texts, normalizer=None, **trainer):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer or normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=4000, special_tokens=BERT, show_progress=False, **trainer))
    return with_template(tokenizer, "[CLS]", "[SEP]")


def roberta(texts, add_prefix_space=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=ROBERTA[:4], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=add_prefix_space)
    return tokenizer


def unigram(texts, normalizer, pre_tokenizer):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(texts, trainers.UnigramTrainer(
        vocab_size=4000, special_tokens=ROBERTA, unk_token="<unk>", show_progress=False))
    return with_template(tokenizer, "<s>", "</s>", 0)


def xlm_roberta(texts):
    return unigram(texts, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))


def modern_bert(texts):
    tokenizer = roberta(texts)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("   ", normalized=True), AddedToken("New York", single_word=True),
                          AddedToken("<new>", rstrip=True)])
    tokenizer.add_special_tokens(BERT)
    return with_template(tokenizer, "[CLS]", "[SEP]")


def stages(texts):
    """The parts that none of the others has."""
    tokenizer = unigram(
        texts,
        normalizers.Sequence([normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(),
                              normalizers.Lowercase(), normalizers.Replace("``", '"'), normalizers.Nmt(),
                              normalizers.Prepend("a")]),
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                 pre_tokenizers.Punctuation("merged_with_previous"),
                                 pre_tokenizers.Split("e", "merged_with_next"),
                                 pre_tokenizers.Metaspace(prepend_scheme="first")]))
    return tokenizer


def whitespace(texts):
    tokenizer = bert(texts, normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(),
         pre_tokenizers.Split(Regex(r"[A-M]+"), "contiguous", invert=True)])
    return tokenizer


QWEN_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
              r"\s+(?!\S)|\s+")


def qwen(texts):
    """As of Qwen3-Embedding: a special token at the end alone."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    end = "<|endoftext|>"
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=[end, "<|im_start|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(add_prefix_space=False, trim_offsets=False),
        processors.TemplateProcessing(single=f"$A:0 {end}:0", pair=f"$A:0 {end}:0 $B:1 {end}:1",
                                      special_tokens=[(end, tokenizer.token_to_id(end))])])
    return tokenizer


def gemma(texts):
    """Characters with bytes for those that it does not know, and words that end with their space."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", METASPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.train_from_iterator(texts[:100], trainers.BpeTrainer(
        vocab_size=2000, show_progress=False, max_token_length=12,
        special_tokens=["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]))
    # As transformers writes it: the second text begins with its own token, which is of its segment.
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos>:0 $A:0 <eos>:0", pair="<bos>:0 $A:0 <eos>:0 <bos>:1 $B:1 <eos>:1",
        special_tokens=[("<bos>", 2), ("<eos>", 1)])
    return tokenizer


def fallback(texts):
    """BPE on characters as SentencePiece makes it, with bytes for those that it does not know."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(METASPACE), normalizers.Replace(" ", METASPACE)])
    tokenizer.train_from_iterator(texts[:200], trainers.BpeTrainer(
        vocab_size=2000, show_progress=False, max_token_length=12,
        special_tokens=ROBERTA + [f"<0x{byte:02X}>" for byte in range(256)]))
    return tokenizer


def sentence_piece(texts, folder, **options):
    """A model trained by SentencePiece, and what transformers makes of it (XLMRobertaConverter)."""
    path = pathlib.Path(folder) / "sentencepiece.bpe.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(path.with_suffix("")), vocab_size=3000,
        unk_id=0, bos_id=1, eos_id=2, minloglevel=2, num_threads=1, **options)
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(piece.piece, piece.score) for piece in model.pieces[3:]] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, 3, options.get("byte_fallback", False)))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap),
        normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), METASPACE)])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ROBERTA[:4]])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return with_template(tokenizer, "<s>", "</s>", 0), path


TOKENIZERS = {
    "bert": bert,
    "bert_cased": lambda texts: bert(texts, normalizers.BertNormalizer(lowercase=False)),
    "roberta": roberta,
    "roberta_prefix": lambda texts: roberta(texts, add_prefix_space=True),
    "modern_bert": modern_bert,
    "xlm_roberta": xlm_roberta,
    "stages": stages,
    "whitespace": whitespace,
    "fallback": fallback,
    "qwen": qwen,
    "gemma": gemma,
}
