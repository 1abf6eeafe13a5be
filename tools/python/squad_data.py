# SPDX-License-Identifier: Apache-2.0
"""SQuAD questions as windows of tokens, and answers with their scores from the logits of windows.

Windows are those of `bertcl eval` and of google-research/bert run_squad.py: [CLS] question [SEP] part of
the context [SEP], or what the tokenizer puts in their place, a window every `stride` tokens of the context,
questions cut at 64 tokens.
"""
import collections
import dataclasses
import re
import string

import numpy as np
from tokenizers import BertWordPieceTokenizer, Tokenizer

import data_files
from data_files import Form

MAX_QUERY, MAX_ANSWER, N_BEST = 64, 30, 20


@dataclasses.dataclass
class Window:
    ids: list  # with [CLS] and both [SEP]
    text_begin: int  # position of the first token of the context
    text_end: int  # of the one after its last
    text_type: int = 1  # token type of the context and what follows it
    question: int = 0  # index within the questions
    spans: list = None  # for each token of the context its first character and the one after its last
    most_context: list = None  # for each of them whether no other window shows more around it
    labels: tuple = (0, 0)  # positions of the first and last token of the answer; 0 where it has none

    @property
    def types(self):
        return [0] * self.text_begin + [self.text_type] * (len(self.ids) - self.text_begin)


@dataclasses.dataclass
class Question:
    id: str
    text: str
    context: str
    answers: list  # (text, first character)
    version_2: bool = False  # of a file of v2.0, where no answer may be right


def load_tokenizer(vocabulary, cased=False, strip_accents=None, split_chinese=True):
    """Of a tokenizer.json, which says it all, or of a vocab.txt. `strip_accents` None: with lower case."""
    try:
        if vocabulary.suffix != ".json":
            return BertWordPieceTokenizer(str(vocabulary), lowercase=not cased, strip_accents=strip_accents,
                                          handle_chinese_chars=split_chinese)
        tokenizer = Tokenizer.from_file(str(vocabulary))
    except Exception as error:  # tokenizers raises that itself
        raise ValueError(f"{vocabulary}: not a vocabulary: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _answers_of(node, place):
    """[(text, first character)] of a list of objects."""
    return [(data_files.member(answer, "text", at, str), data_files.member(answer, "answer_start", at, int))
            for answer, at in data_files.elements(node, "answers", place)]


def _answers_of_line(node, place):
    """Of two lists as well, as Hugging Face's data sets have them."""
    if not isinstance(node.get("answers"), dict):
        return _answers_of(node, place)
    at = data_files.inside(place, "answers")
    texts, starts = (data_files.member(node["answers"], name, at, list) for name in ("text", "answer_start"))
    if list(map(type, texts)) != [str] * len(starts) or list(map(type, starts)) != [int] * len(texts):
        raise ValueError(f"{at}: expected as many strings in text as integers in answer_start")
    return list(zip(texts, starts))


def _load_lines(content, path):
    """Of a question a line. They are v2.0 if one of them has no answer."""
    questions, lines = [], {}
    for number, line in data_files.lines_of(content):
        node, place = data_files.parse_json(line, f"{path}:{number}"), f"{path}:{number}: "
        text, context = (data_files.member(node, name, place, str) for name in ("question", "context"))
        given = node.get("id") is not None
        name = str(data_files.member(node, "id", place, str, int)) if given else str(len(questions))
        if name in lines:
            raise ValueError(f"{place}id {name!r} is already used in line {lines[name]}; ids must be unique")
        lines[name] = number
        questions.append(Question(name, text, context, _answers_of_line(node, place)))
    version_2 = not all(question.answers for question in questions)
    for question in questions:
        question.version_2 = version_2
    return questions


def load_questions(path, limit=None):
    """The questions of a file in SQuAD format, or of JSON lines, in file order. A file that has is_impossible is v2.0; in no
    other may questions be without an answer."""
    content, form = data_files.read_data(path, Form.SQUAD, Form.DOCUMENT)
    if form == Form.JSON_LINES:
        return _load_lines(content, path)[:limit]
    questions, places, unanswered, version_2 = [], {}, [], False
    for article, in_data in data_files.elements(data_files.read_object(path), "data", f"{path}: "):
        for paragraph, in_article in data_files.elements(article, "paragraphs", in_data):
            context = data_files.member(paragraph, "context", in_article, str)
            for qa, place in data_files.elements(paragraph, "qas", in_article):
                name = str(data_files.member(qa, "id", place, str, int))
                text = data_files.member(qa, "question", place, str)
                answers = _answers_of(qa, place)
                if "is_impossible" in qa:
                    data_files.member(qa, "is_impossible", place, bool)
                    version_2 = True
                if not answers:
                    unanswered.append(place)
                if name in places:
                    raise ValueError(f"{place}.id {name!r} is already used at {places[name]}; ids must be unique")
                places[name] = place.removeprefix(f"{path}: ")
                questions.append(Question(name, text, context, answers))
    if not questions:
        raise ValueError(f"{path}: contains no questions")
    if unanswered and not version_2:
        raise ValueError(f"{unanswered[0]}.answers is empty; only v2.0 files (with is_impossible) may have questions "
                         "without an answer")
    for question in questions:
        question.version_2 = version_2
    return questions[:limit]


def make_windows(questions, tokenizer, length=384, stride=128):
    """All windows of all questions, in order. Labels are those of the first answer."""
    before, between, after, text_type = special_tokens(tokenizer)
    windows, contexts = [], {}
    for index, question in enumerate(questions):
        if question.context not in contexts:
            contexts = {question.context: tokenizer.encode(question.context, add_special_tokens=False)}
        context = contexts[question.context]
        head = tokenizer.encode(question.text, add_special_tokens=False).ids[:MAX_QUERY]
        question_tokens = len(head)
        head = before + head + between
        room = length - len(head) - len(after)
        if room < 1:
            raise ValueError(f"{length} tokens leave no room for the context beside the question "
                             f"{question.id} of {question_tokens} tokens")
        begins = [0]
        while begins[-1] + room < len(context.ids):
            begins.append(begins[-1] + min(room, stride))
        ranges = [(b, min(b + room, len(context.ids))) for b in begins]
        best = _best_windows(ranges, len(context.ids))
        answer = _answer_tokens(question, context.offsets)
        for place, (begin, end) in enumerate(ranges):
            if begin == end:
                continue  # a context without words
            window = Window(head + context.ids[begin:end] + after, len(head), len(head) + end - begin, text_type, index,
                            context.offsets[begin:end], list(best[begin:end] == place))
            if answer and begin <= answer[0] and answer[1] < end:
                window.labels = tuple(token - begin + len(head) for token in answer)
            windows.append(window)
    return windows


def special_tokens(tokenizer):
    """What stands before, between and after two texts, and the token type of the second: [CLS], [SEP], [SEP] and 1 of
    BERT."""
    pair = tokenizer.encode("a", "a")
    first, second = (([i for i, text in enumerate(pair.sequence_ids) if text == wanted]) for wanted in (0, 1))
    if not first or not second or first[0] == 0:
        raise ValueError("the tokenizer puts no special token before a text, such as [CLS]")
    return (pair.ids[:first[0]], pair.ids[first[-1] + 1:second[0]], pair.ids[second[-1] + 1:], pair.type_ids[second[0]])


def _best_windows(ranges, tokens):
    """For each token the window in which the smaller of its sides is largest; the first of equals."""
    scores = np.full((len(ranges), tokens), -1.0)
    for row, (begin, end) in enumerate(ranges):
        place = np.arange(end - begin)
        scores[row, begin:end] = np.minimum(place, place[::-1]) + 0.01 * (end - begin)
    return scores.argmax(axis=0)


def _answer_tokens(question, offsets):
    """First and last token of the context that the first answer touches, or None."""
    if not question.answers:
        return None
    text, begin = question.answers[0]
    touched = [i for i, (a, b) in enumerate(offsets) if a < begin + len(text) and b > begin]
    return (touched[0], touched[-1]) if touched else None


# --- answers ------------------------------------------------------------------------------------
def best_spans(window, start, end):
    """(sum of logits, first token, last token) of what `window` offers as answers."""
    def top(logits):
        return np.argsort(-logits[:len(window.ids)], kind="stable")[:N_BEST]
    first, last = window.text_begin, window.text_end
    for s in top(start):
        if first <= s < last and window.most_context[s - first]:
            for e in top(end):
                if s <= e < last and e - s < MAX_ANSWER:
                    yield float(start[s] + end[e]), s, e


def answer(question, windows, logits, version_2):
    """The text of the best span over all windows; "" where the null answer of v2.0 is better.
    Words are taken whole up to punctuation, as offsets of tokens say."""
    best, text, null = -np.inf, "", np.inf
    for window, (start, end) in zip(windows, logits):
        null = min(null, float(start[0] + end[0]))
        for score, s, e in best_spans(window, start, end):
            if score > best:
                a, b = window.spans[s - window.text_begin][0], window.spans[e - window.text_begin][1]
                best, text = score, question.context[a:b]
    return "" if version_2 and null > best else text


def normalize(text):
    """As the official script: lower case, no punctuation, no articles, single spaces."""
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def score(found, answers):
    """Exact match and F1 of one answer, the best over the given ones."""
    exact, f1 = 0.0, 0.0
    for expected in answers or [""]:
        a, b = normalize(found).split(), normalize(expected).split()
        exact = max(exact, float(a == b))
        common = sum((collections.Counter(a) & collections.Counter(b)).values())
        if not a or not b:
            f1 = max(f1, float(a == b))
        elif common:
            f1 = max(f1, 2 * common / (len(a) + len(b)))
    return exact, f1


def evaluate(questions, windows, logits):
    """{"exact_match", "f1", "total"} in percent, and the answers by id. `logits`: start and end of
    each window."""
    of_question = collections.defaultdict(list)
    for window, pair in zip(windows, logits):
        of_question[window.question].append((window, pair))
    version_2 = any(q.version_2 for q in questions)
    answers, totals = {}, np.zeros(2)
    for index, question in enumerate(questions):
        here = of_question[index]
        answers[question.id] = answer(question, [w for w, _ in here], [p for _, p in here], version_2)
        totals += score(answers[question.id], [text for text, _ in question.answers])
    exact, f1 = 100 * totals / max(1, len(questions))
    return {"exact_match": exact, "f1": f1, "total": len(questions)}, answers
