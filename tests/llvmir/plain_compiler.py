"""Compiler of the random kernels to LLVM IR: variables in allocas, one block for each jump target, no optimisation of its own.

It knows integer expressions, if, while, for over range, break, continue, return, else of loops, and calls. Values have 64 bits.
"""

import ast

from tests.texts import texts

_COMPARISONS = {ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge", ast.Eq: "eq", ast.NotEq: "ne"}
_OPERATIONS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}

HELPERS = texts("llvmir/calls.ll")["helpers"]


def llvm_text(source: str) -> str:
    """Return the module of a text of functions; the function `kernel` has array parameters."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return HELPERS + "".join(_Function(node).text() for node in functions)


class _Function:
    def __init__(self, node: ast.FunctionDef) -> None:
        self.node, self.is_kernel = node, node.name == "kernel"
        self.lines: list[str] = []
        self.slots: dict[str, str] = {}
        self.number = 0
        self.loops: list[tuple[str, str]] = []  # blocks of break and continue

    def text(self) -> str:
        names = [argument.arg for argument in self.node.args.args]
        kind, result = ("ptr", "void") if self.is_kernel else ("i64", "i64")
        for name in names if not self.is_kernel else ():
            self._emit(f"store i64 %{name}, ptr {self._slot(name)}")
        self._body(self.node.body)
        self._emit("ret void" if self.is_kernel else "ret i64 0")
        allocas = [f"  {slot} = alloca i64\n  store i64 0, ptr {slot}" for slot in self.slots.values()]
        head = f"define {'' if self.is_kernel else 'internal '}{result} @{self.node.name}("
        head += ", ".join(f"{kind} %{name}" for name in names) + (") {" if self.is_kernel else ") alwaysinline {")
        return "\n".join([head, "entry:", *allocas, *self.lines, "}\n"])

    def _emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def _fresh(self, stem: str) -> str:
        self.number += 1
        return f"{stem}{self.number}"

    def _let(self, text: str) -> str:
        name = f"%{self._fresh('v')}"
        self._emit(f"{name} = {text}")
        return name

    def _slot(self, name: str) -> str:
        return self.slots.setdefault(name, f"%{name}.slot")

    def _block(self, label: str) -> None:
        self._emit(f"br label %{label}")
        self.lines.append(f"{label}:")

    def _leave(self, line: str) -> None:
        """End a block; what follows is unreachable."""
        self._emit(line)
        self.lines.append(f"{self._fresh('dead')}:")

    # -------------------------------------------------------------- statements
    def _body(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in list(zip(targets, [self._value(v) for v in values], strict=True)):
                    self._store(target, value)
            case ast.Assign(targets=[target], value=value):
                self._store(target, self._value(value))
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                total = ast.BinOp(ast.Name(target.id), op, value)
                self._store(target, self._value(total))
            case ast.If():
                self._if(node)
            case ast.While():
                self._while(node)
            case ast.For():
                self._for(node)
            case ast.Break() | ast.Continue():
                self._leave(f"br label %{self.loops[-1][isinstance(node, ast.Continue)]}")
            case ast.Return(value=None):
                self._leave("ret void")
            case ast.Return(value=value):
                assert value is not None
                self._leave(f"ret i64 {self._value(value)}")
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _store(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Subscript):
            self._emit(f"store i64 {value}, ptr {self._address(target)}")
        else:
            assert isinstance(target, ast.Name)
            self._emit(f"store i64 {value}, ptr {self._slot(target.id)}")

    def _if(self, node: ast.If) -> None:
        then, orelse, after = (self._fresh(name) for name in ("then", "else", "after"))
        self._jump(node.test, then, orelse)
        self.lines.append(f"{then}:")
        self._body(node.body)
        self._emit(f"br label %{after}")
        self.lines.append(f"{orelse}:")
        self._body(node.orelse)
        self._block(after)

    def _loop(self, node: ast.While | ast.For, test: ast.expr | None, step: str) -> None:
        head, body, after, end = (self._fresh(name) for name in ("head", "body", "after", "end"))
        again = self._fresh("again")
        self._block(head)
        if test is not None:
            self._jump(test, body, after)
        else:
            more = self._let(f"icmp sgt i64 {self._let(f'load i64, ptr {step}.left')}, 0")
            self._emit(f"br i1 {more}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        if test is None:
            assert isinstance(node, ast.For) and isinstance(node.target, ast.Name)
            left, value = self._let(f"load i64, ptr {step}.left"), self._let(f"load i64, ptr {step}.next")
            self._emit(f"store i64 {self._let(f'sub i64 {left}, 1')}, ptr {step}.left")
            stride = self._let(f"load i64, ptr {step}.step")
            self._emit(f"store i64 {self._let(f'add i64 {value}, {stride}')}, ptr {step}.next")
            self._emit(f"store i64 {value}, ptr {self._slot(node.target.id)}")
        self.loops.append((end, again))
        self._body(node.body)
        self.loops.pop()
        self._block(again)
        self._emit(f"br label %{head}")
        self.lines.append(f"{after}:")
        self._body(node.orelse)
        self._block(end)

    def _while(self, node: ast.While) -> None:
        self._loop(node, node.test, "")

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        arguments = [self._value(argument) for argument in node.iter.args]
        start, stop = arguments[:2] if len(arguments) > 1 else ("0", arguments[0])
        step = arguments[2] if len(arguments) > 2 else "1"
        prefix = f"%{self._fresh('range')}"
        for name in ("left", "next", "step"):
            self.slots[f"{prefix}.{name}"] = f"{prefix}.{name}"
        distance = self._let(f"sub i64 {stop}, {start}")
        if step.startswith("-"):
            distance, length = self._let(f"sub i64 0, {distance}"), step[1:]
        else:
            length = step
        rounded = self._let(f"add i64 {distance}, {self._let(f'sub i64 {length}, 1')}")
        positive = self._let(f"icmp sgt i64 {distance}, 0")
        count = self._let(f"select i1 {positive}, i64 {self._let(f'sdiv i64 {rounded}, {length}')}, i64 0")
        for name, value in (("left", count), ("next", start), ("step", step)):
            self._emit(f"store i64 {value}, ptr {prefix}.{name}")
        self._loop(node, None, prefix)

    # -------------------------------------------------------------- expressions
    def _jump(self, test: ast.expr, true: str, false: str) -> None:
        """Branch on a condition, with short circuits."""
        match test:
            case ast.BoolOp(op=op, values=values):
                for value in values[:-1]:
                    following = self._fresh("next")
                    self._jump(value, *((following, false) if isinstance(op, ast.And) else (true, following)))
                    self.lines.append(f"{following}:")
                self._jump(values[-1], true, false)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._jump(operand, false, true)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self._value(left), self._value(right)
                flag = self._let(f"icmp {_COMPARISONS[type(op)]} i64 {a}, {b}")
                self._emit(f"br i1 {flag}, label %{true}, label %{false}")
            case _:
                raise NotImplementedError(ast.unparse(test))

    def _value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int() as value):
                return str(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return f"-{value}"
            case ast.Name(id=name):
                return self._let(f"load i64, ptr {self._slot(name)}")
            case ast.Attribute():
                return self._let(f"zext i32 {self._let('call i32 @llvm.nvvm.read.ptx.sreg.tid.x()')} to i64")
            case ast.Subscript():
                return self._let(f"load i64, ptr {self._address(node)}")
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._value(left), self._value(right)
                if type(op) in _OPERATIONS:
                    return self._let(f"{_OPERATIONS[type(op)]} i64 {a}, {b}")
                name = "floor_mod" if isinstance(op, ast.Mod) else "floor_div"
                return self._let(f"call i64 @{name}(i64 {a}, i64 {b})")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._conditional(test, body, orelse)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                values = ", ".join(f"i64 {self._value(argument)}" for argument in arguments)
                return self._let(f"call i64 @{name}({values})")
        raise NotImplementedError(ast.unparse(node))

    def _conditional(self, test: ast.expr, *arms: ast.expr) -> str:
        labels = [self._fresh("arm") for _ in arms]
        slot, after = self._slot(self._fresh("chosen")), self._fresh("after")
        self._jump(test, labels[0], labels[1])
        for label, arm in zip(labels, arms, strict=True):
            self.lines.append(f"{label}:")
            self._emit(f"store i64 {self._value(arm)}, ptr {slot}")
            self._emit(f"br label %{after}")
        self.lines.append(f"{after}:")
        return self._let(f"load i64, ptr {slot}")

    def _address(self, node: ast.Subscript) -> str:
        assert isinstance(node.value, ast.Name)
        return self._let(f"getelementptr i64, ptr %{node.value.id}, i64 {self._value(node.slice)}")
