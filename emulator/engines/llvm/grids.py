"""Blocks that wait for the grid: what of a block outlives a grid barrier, and how the code leaves a block and comes back.

Each block has a frame in memory, with shared, local and workspace memory of its own. A grid barrier notes in the frame
where to go on and leaves the block. The engine calls the code again when all blocks have come so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...llvm.builder import FunctionBuilder

OWN = ("shared", "local", "workspace", "frame")
"""Memory that each block has. The function is given that of all blocks."""
RESUME, GOES_ON, PHASE = range(3)
"""The first words of a frame, i32: the barrier to go on after (0: the start of the block; FINISHED), whether to do so in
this call, barriers passed."""
FINISHED = -1
_HEAD = 64
_SIZES = {"i32": 4, "i64": 8, "<32 x i32>": 128}
_FRAME, _RESUME = "  ; the frame", "  ; the way back"
TABLE = "@block.sizes"


@dataclass
class Frame:
    """What of a block outlives a grid barrier. resumes: the labels after the barriers. size: bytes."""

    resumes: list[str] = field(default_factory=list)
    size: int = _HEAD
    lines: list[str] = field(default_factory=list)

    def slot(self, builder: FunctionBuilder, type: str, hint: str) -> str:
        """Memory of the frame; the name of its address."""
        name = f"%{builder.name(hint)}"
        self.lines.append(f"  {name} = getelementptr i8, ptr %.frame, i64 {self.size}")
        self.size += -(-_SIZES[type] // 64) * 64
        return name

    # -------------------------------------------------------------- code
    def enter(self, builder: FunctionBuilder) -> None:
        """At the start of a block: find its memory, and pass it by where it does not go on."""
        for number, name in enumerate(OWN):
            size = builder.load("i64", builder.element("i64", TABLE, number), "size")
            at = builder.let(f"mul i64 {size}, %.block", "at")
            builder.do(f"%.{name} = getelementptr i8, ptr %.{name}s, i64 {at}")
        builder.do(f"%.phase = getelementptr i32, ptr %.frame, i64 {PHASE}")
        goes_on = builder.load("i32", builder.element("i32", "%.frame", GOES_ON), "goes.on")
        enter = builder.label("block.enter")
        builder.branch(builder.let(f"icmp ne i32 {goes_on}, 0", "goes"), enter, ".blocks.next")
        builder.place(enter)

    def resume(self, builder: FunctionBuilder) -> None:
        """Go on where the block left."""
        builder.lines += [_FRAME, _RESUME]
        builder.place(".block.start")

    def leave(self, builder: FunctionBuilder, some: str) -> None:
        """At a grid barrier. some: an i1, whether any thread of the block is there."""
        label, away = builder.label("grid.barrier"), builder.label("waits")
        self.resumes.append(label)
        builder.branch(some, away, label)
        builder.place(away)
        builder.store("i32", str(len(self.resumes)), builder.element("i32", "%.frame", RESUME))
        builder.jump(".blocks.next")
        builder.place(label)

    def finish(self, builder: FunctionBuilder) -> None:
        """At the end of a block."""
        builder.store("i32", str(FINISHED), builder.element("i32", "%.frame", RESUME))
        builder.jump(".blocks.next")
        builder.place(".blocks.next")

    def filled_in(self, lines: list[str]) -> list[str]:
        """The lines of the function, with what was not known when they were written."""
        ways = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(self.resumes, 1))
        back = [
            f"  %.resume.at = getelementptr i32, ptr %.frame, i64 {RESUME}",
            "  %.resume = load i32, ptr %.resume.at",
            f"  switch i32 %.resume, label %.block.start [ {ways} ]",
        ]
        at = {_FRAME: self.lines, _RESUME: back}
        return [new for line in lines for new in at.get(line, [line])]
