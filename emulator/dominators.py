"""Orders and dominators of the nodes of a control flow graph."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def reverse_postorder(successors: Mapping[Node, Sequence[Node]], entry: Node) -> list[Node]:
    """Return the nodes that the entry reaches: each before its successors, except along back edges."""
    postorder: list[Node] = []
    visited = {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        node, targets = stack[-1]
        target = next((t for t in targets if t not in visited), None)
        if target is None:
            postorder.append(node)
            stack.pop()
        else:
            visited.add(target)
            stack.append((target, iter(successors[target])))
    return postorder[::-1]


def immediate_dominators(order: Sequence[Node], predecessors: Mapping[Node, Sequence[Node]]) -> dict[Node, Node]:
    """Return the immediate dominator of each node, by Cooper, Harvey and Kennedy (2001); the entry's is itself.

    order: of `reverse_postorder`, which starts with the entry. predecessors: among these nodes.
    """
    number = {node: n for n, node in enumerate(order)}
    dominators = {order[0]: order[0]}

    def common(a: Node, b: Node) -> Node:
        while a != b:
            while number[a] > number[b]:
                a = dominators[a]
            while number[b] > number[a]:
                b = dominators[b]
        return a

    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            processed = [p for p in predecessors[node] if p in dominators]
            new = processed[0]
            for other in processed[1:]:
                new = common(new, other)
            if dominators.get(node) != new:
                dominators[node], changed = new, True
    return dominators
