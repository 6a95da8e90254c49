"""Blocks that wait for other blocks: state of a block across a barrier of the grid or a cluster, and code to suspend and resume a block.

Each block has a frame in memory, with its own shared, local and workspace memory. Such a barrier stores the resumption point in
the frame and leaves the block. The engine calls the code again after the other blocks have arrived.
"""

from dataclasses import dataclass, field

from ...llvm.builder import FunctionBuilder

OWN = ("shared", "local", "workspace", "frame")
"""Memories of each block. The function receives those of all blocks."""
RESUME, RESUMES, PHASE = range(3)
"""First words of a frame, i32: the barrier to resume after (0: start of the block; FINISHED, or RETURNED if all threads have left it
before its end), whether to resume in this call, and the number of barriers passed."""
FINISHED, RETURNED = -1, -2
_HEAD = 64
_SIZES = {"i32": 4, "i64": 8, "<32 x i32>": 128}
_FRAME, _RESUME = "  ; the frame", "  ; the resumption"
TABLE = "@block.sizes"


@dataclass
class Frame:
    """State of a block across a barrier of blocks. place: of the block in the memory of all. resumes: labels after the barriers.
    size: bytes."""

    place: str
    resumes: list[str] = field(default_factory=list)
    size: int = _HEAD
    lines: list[str] = field(default_factory=list)

    def slot(self, builder: FunctionBuilder, type: str, hint: str) -> str:
        """Allocate memory in the frame. Return the name of its address."""
        name = f"%{builder.name(hint)}"
        self.lines.append(f"  {name} = getelementptr i8, ptr %.frame, i64 {self.size}")
        self.size += -(-_SIZES[type] // 64) * 64
        return name

    # -------------------------------------------------------------- code
    def enter(self, builder: FunctionBuilder) -> None:
        """At the start of a block: load its memory, and skip the block if it does not resume in this call."""
        for number, name in enumerate(OWN):
            size = builder.load("i64", builder.element("i64", TABLE, number), "size")
            at = builder.let(f"mul i64 {size}, {self.place}", "address")
            builder.do(f"%.{name} = getelementptr i8, ptr %.{name}s, i64 {at}")
        builder.do(f"%.phase = getelementptr i32, ptr %.frame, i64 {PHASE}")
        resumes_now = builder.load("i32", builder.element("i32", "%.frame", RESUMES), "resumed")
        enter = builder.label("block.enter")
        builder.branch(builder.let(f"icmp ne i32 {resumes_now}, 0", "resumes"), enter, ".blocks.next")
        builder.place(enter)

    def resume(self, builder: FunctionBuilder) -> None:
        """Jump to the resumption point."""
        builder.lines += [_FRAME, _RESUME]
        builder.place(".block.start")

    def leave(self, builder: FunctionBuilder, some: str) -> None:
        """Suspend the block at a barrier of blocks. some: an i1, any thread of the block is at the barrier."""
        label, away = builder.label("grid.barrier"), builder.label("waits")
        self.resumes.append(label)
        builder.branch(some, away, label)
        builder.place(away)
        builder.store("i32", str(len(self.resumes)), builder.element("i32", "%.frame", RESUME))
        builder.jump(".blocks.next")
        builder.place(label)

    def finish(self, builder: FunctionBuilder, some: str) -> None:
        """Mark the block as finished. some: an i1, any thread has run to the end."""
        end = builder.let(f"select i1 {some}, i32 {FINISHED}, i32 {RETURNED}", "end")
        builder.store("i32", end, builder.element("i32", "%.frame", RESUME))
        builder.jump(".blocks.next")
        builder.place(".blocks.next")

    def filled_in(self, lines: list[str]) -> list[str]:
        """Return the lines of the function with placeholders replaced."""
        cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(self.resumes, 1))
        back = [
            f"  %.resume.at = getelementptr i32, ptr %.frame, i64 {RESUME}",
            "  %.resume = load i32, ptr %.resume.at",
            f"  switch i32 %.resume, label %.block.start [ {cases} ]",
        ]
        at = {_FRAME: self.lines, _RESUME: back}
        return [new for line in lines for new in at.get(line, [line])]
