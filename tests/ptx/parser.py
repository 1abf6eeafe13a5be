# SPDX-License-Identifier: Apache-2.0
"""PTX text to a module: constants, and functions as flat lists of instructions. Calls are expanded where they
stand, with registers and labels of their own: OpenCL has no recursion."""
import bisect
import dataclasses
import functools
import re

from errors import PtxError

BYTES = {"pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b32": 4, "u32": 4,
         "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}


@dataclasses.dataclass
class Instruction:
    line: int
    text: str
    opcode: list  # its parts between dots
    operands: list
    guard: tuple = None  # (register, negated)


@dataclasses.dataclass
class Function:
    name: str
    parameters: list  # (name, bytes)
    results: list
    registers: dict = dataclasses.field(default_factory=dict)  # name or prefix -> type
    arrays: dict = dataclasses.field(default_factory=dict)  # name -> (space, bytes, alignment)
    body: list = dataclasses.field(default_factory=list)  # instructions, and labels as strings


@dataclasses.dataclass
class Module:
    functions: dict
    constants: dict  # name -> (bytes, alignment)
    shared: dict  # arrays outside of functions, likewise: name -> (space, bytes, alignment)


_VARIABLE = re.compile(r"(?:\.(?:weak|visible|extern)\s+)*\.(const|global|shared|local|param)\s+"
                       r"(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d*)\])?\s*(?:=\s*\{([^}]*)\})?\s*$", re.S)
_HEADER = re.compile(r"(?:\.(?:weak|visible)\s+)*\.(entry|func)\s*(?:\(([^)]*)\))?\s*"
                     r"([\w$]+)\s*(?:\(([^)]*)\))?\s*", re.S)


def _variable(text, line):
    """(space, name, bytes, alignment, initial values) of a declaration."""
    found = _VARIABLE.match(text)
    if not found:
        raise PtxError(f"unknown declaration '{text.strip()[:80]}'", line)
    space, alignment, kind, name, count, values = found.groups()
    size = BYTES[kind] * (int(count) if count else 1)
    return space, name, size, int(alignment or BYTES[kind]), values


def _parameters(text):
    """Names and sizes of a list of parameters."""
    found = []
    for part in filter(str.strip, (text or "").split(",")):
        name, count = re.search(r"([\w$]+)(?:\[(\d+)\])?\s*$", part.strip()).groups()
        kind = re.search(r"\.(?:param|reg)\s+(?:\.align\s+\d+\s+)?\.(\w+)", part).group(1)
        found.append((name, BYTES[kind] * int(count or 1)))
    return found


_NESTED = re.compile(r"[{\[(]")


def split_operands(text):
    """At the commas outside of braces, brackets and parentheses."""
    if not _NESTED.search(text):
        return [part for part in map(str.strip, text.split(",")) if part]
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        if c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


@functools.cache
def _parts(text):
    """(text in one line, opcode, operands, guard) of an instruction: a kernel's variants have many in common."""
    guard = None
    text = " ".join(text.split())
    if text.startswith("@"):
        head, text = text.split(" ", 1)
        guard = (head.lstrip("@!"), "!" in head)
    opcode, _, rest = text.partition(" ")
    return text, opcode.split("."), split_operands(rest), guard


def parse(text):
    """The module of a PTX text."""
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S))
    module = Module({}, {}, {})
    i, function, depth, scopes, made = 0, None, 0, [{}], 0
    blank = re.compile(r"\s*")
    label = re.compile(r"([$\w]+):")
    ends = [m.start() for m in re.finditer("\n", text)]
    while (i := blank.match(text, i).end()) < len(text):
        line = bisect.bisect_left(ends, i) + 1
        if function is None:
            if directive := re.compile(r"\.(version|target|address_size)[^\n]*").match(text, i):
                i = directive.end()
            elif header := _HEADER.match(text, i):
                kind, results, name, parameters = header.groups()
                i = header.end()
                i += len(re.compile(r"(?:\.(?:reqntid|maxntid|minnctapersm)[^\n{]*\s*)*").match(text, i).group())
                if text[i] == ";":  # a declaration
                    i += 1
                    continue
                function = Function(name, _parameters(parameters), _parameters(results))
                module.functions[name] = function
                i, depth, scopes = i + 1, 1, [{}]
            else:
                end = text.index(";", i)
                space, name, size, alignment, values = _variable(text[i:end], line)
                if space == "shared":
                    module.shared[name] = ("shared", size, alignment)
                else:
                    data = bytes(int(v) for v in values.split(",")) if values else bytes(size)
                    module.constants[name] = (data.ljust(size, b"\0"), alignment)
                i = end + 1
            continue
        if text[i] == "{":
            depth, i = depth + 1, i + 1
            scopes.append({})
        elif text[i] == "}":
            depth, i = depth - 1, i + 1
            scopes.pop()
            if depth == 0:
                function = None
        elif found := label.match(text, i):
            function.body.append(found.group(1))
            i = found.end()
        else:
            end = text.index(";", i)
            statement, i = text[i:end], end + 1
            if statement.startswith(".reg"):
                _, kind, *names = re.split(r"[\s,]+", statement.strip())
                for name in names:
                    function.registers[name.split("<")[0]] = kind[1:]
            elif statement.startswith((".param", ".local", ".shared")):
                space, name, size, alignment, _ = _variable(statement, line)
                if depth > 1:  # of a call: each has its own
                    made += 1
                    scopes[-1][name] = f"{name}@{made}"
                    name = f"{name}@{made}"
                function.arrays[name] = (space, size, alignment)
            elif not statement.startswith((".pragma", ".loc", ".file")):
                if any(scopes):
                    names = {old: new for scope in scopes for old, new in scope.items()}
                    statement = re.sub(r"\b(param\d+|retval\d+)\b", lambda m: names.get(m.group(), m.group()),
                                       statement)
                function.body.append(Instruction(line, *_parts(statement)))
    return module


def expand(module, name, prefix="", depth=0):
    """The function with all calls expanded. Registers, labels and arrays of the callees get a prefix."""
    if name not in module.functions:
        raise PtxError(f"there is no function '{name}'")
    if depth > 20:
        raise PtxError(f"'{name}' is recursive")
    function = module.functions[name]
    flat = Function(name, function.parameters, function.results, dict(function.registers), dict(function.arrays))
    calls = 0
    for item in function.body:
        if isinstance(item, str) or item.opcode[0] != "call":
            flat.body.append(item)
            continue
        parts = [p[1:-1] if p.startswith("(") else p for p in item.operands]
        results, callee, arguments = parts if len(parts) == 3 else ["", *parts, ""][:3]
        calls += 1
        inner = expand(module, callee, depth=depth + 1)
        own = f"{callee}#{calls}:"
        given = dict(zip((n for n, _ in inner.parameters), split_operands(arguments)))
        given |= dict(zip((n for n, _ in inner.results), split_operands(results)))
        _splice(flat, inner, own, given)
    return flat


_NAME = re.compile(r"[%$@\w#:]*[A-Za-z_][%$@\w#:]*(?:\.[xyz]\b)?")


def _splice(flat, inner, own, given):
    """Appends the body of `inner` to `flat` with its names as `given`, else with `own` before them."""
    labels = {item for item in inner.body if isinstance(item, str)}
    registers = inner.registers

    def renamed(match):
        name = match.group()
        if name in given:
            return given[name]
        if name in labels or name in inner.arrays or name in registers:
            return own + name
        if name.startswith("%") and name.rstrip("0123456789") in registers:
            return own + name
        return name

    flat.registers |= {own + n: t for n, t in registers.items()}
    flat.arrays |= {own + n: a for n, a in inner.arrays.items()}
    end = own + "end"
    for item in inner.body:
        if isinstance(item, str):
            flat.body.append(own + item)
            continue
        new = dataclasses.replace(item)
        new.operands = [_NAME.sub(renamed, o) for o in item.operands]
        if item.guard:
            new.guard = (own + item.guard[0], item.guard[1])
        if item.opcode[0] == "ret":
            new.opcode, new.operands = ["bra"], [end]
        flat.body.append(new)
    flat.body.append(end)
