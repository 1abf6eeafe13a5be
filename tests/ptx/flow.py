# SPDX-License-Identifier: Apache-2.0
"""The order in which lanes that have branched apart run.

Lanes meet again where their paths join, as hardware has it. Blocks are numbered so that all paths to a block come
before it, and a whole loop before what follows it: a weak topological order (Bourdoncle, "Efficient chaotic iteration
strategies with widenings", 1993). Those with the least number run. The order of the text would not do: compilers
put blocks at its end that jump back."""


def block_order(code):
    """Instruction where a block begins -> its number. `code` is a list of (kind, guard, negated, target)."""
    starts = {0}
    for i, (kind, _, _, target) in enumerate(code):
        if kind == "bra":
            starts.add(target)
        if kind in ("bra", "ret", "bar"):
            starts.add(i + 1)
    starts = sorted(s for s in starts if s < len(code))
    successors = {}
    for start, end in zip(starts, starts[1:] + [len(code)]):
        kind, guard, _, target = code[end - 1]
        following = [target] if kind == "bra" else []
        if end < len(code) and (kind not in ("bra", "ret") or guard is not None):
            following.append(end)
        successors[start] = following
    order = []
    _number(0, set(starts), successors, order)
    return {start: number for number, start in enumerate(order)}


def _components(entry, nodes, successors):
    """Strongly connected components that `entry` reaches in `nodes`, in topological order (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    work = [(entry, iter(successors[entry]))]
    index[entry] = low[entry] = 0
    stack.append(entry)
    on_stack.add(entry)
    while work:
        node, following = work[-1]
        for other in following:
            if other not in nodes:
                continue
            if other not in index:
                index[other] = low[other] = len(index)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(successors[other])))
                break
            if other in on_stack:
                low[node] = min(low[node], index[other])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                component = []
                while not component or component[-1] != node:
                    component.append(stack.pop())
                    on_stack.discard(component[-1])
                found.append(component)
    return found[::-1]


def _number(entry, nodes, successors, order):
    for component in _components(entry, nodes, successors):
        head = component[-1]  # the first that was met: a loop's entry
        order.append(head)
        if len(component) == 1:
            continue
        rest = set(component) - {head}
        for start in successors[head]:
            if start in rest:
                before = len(order)
                _number(start, rest, successors, order)
                rest -= set(order[before:])
