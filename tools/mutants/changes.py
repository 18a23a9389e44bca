"""Which changes can be made to a source file? One small slip per mutant, as text in its place."""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARE = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_BINARY = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*", ast.Pow: "*",
    ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
_SKIPPED = (ast.Assert, ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)  # ours to trust, or words for people


@dataclass(frozen=True)
class Mutant:
    """One change: the text between two positions of a file replaced."""

    file: str  # seen from the root
    kind: str
    line: int
    last_line: int
    statement: int  # first line of the simple statement it stands in; in a header (if, for, with) its own line
    inside: bool  # a function's body: a test runs it, importing the file does not
    start: int  # characters of the file
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """The same as long as the file is the same."""
        return f"{self.file}:{self.line}:{self.kind}:{self.start}:{_hash(self.new)[:8]}"

    def rank(self, seed: int, source: str) -> str:
        """Drawn for this change: by its line and not its place, so that other edits leave a sample as it is."""
        line = source.splitlines()[self.line - 1].strip()
        return _hash(f"{seed} {self.file} {line} {self.kind} {self.old} {self.new}")

    def apply(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.end :]

    def parses(self, source: str) -> bool:
        try:
            ast.parse(self.apply(source))
        except SyntaxError:
            return False
        return True


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def mutants(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of the file; few of them do not parse."""
    found = _Finder(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()).all()
    return sorted(found, key=lambda m: (m.start, m.kind, m.new))


class _Finder:
    def __init__(self, source: str, file: str) -> None:
        self.source, self.file = source, file
        lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.lines = lines
        self.statement = 0

    def all(self) -> Iterator[Mutant]:
        yield from self._walk(ast.parse(self.source), inside=False)

    def _walk(self, node: ast.AST, inside: bool) -> Iterator[Mutant]:
        if isinstance(node, _SKIPPED) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.stmt):
            self.statement = 0 if hasattr(node, "body") else node.lineno
        yield from self._changes(node, inside)
        deeper = inside or isinstance(node, (ast.FunctionDef, ast.Lambda))
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "format_spec", "type_params"):
                continue
            at_import = isinstance(node, ast.FunctionDef) and field == "args"
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._walk(child, inside if at_import else deeper)

    def _changes(self, node: ast.AST, inside: bool) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                yield self._between("comparison", left, right, _COMPARE[type(op)], inside)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                yield self._between("arithmetic", left, right, _BINARY[type(op)], inside)
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _BINARY:
                yield self._between("arithmetic", target, value, f"{_BINARY[type(op)]}=", inside)
            case ast.BoolOp(op=op, values=[first, second, *_]):
                yield self._between("boolean", first, second, "or" if isinstance(op, ast.And) else "and", inside)
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
                yield self._replaced("boolean", node, f"({self._text(operand)})", inside)
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield self._replaced("boolean", test, f"(not ({self._text(test)}))", inside)
            case ast.Constant(value=bool() as value):
                yield self._replaced("constant", node, str(not value), inside)
            case ast.Constant(value=int() as value):
                yield self._replaced("constant", node, str(value + 1), inside)
            case ast.Constant(value=float() as value):
                yield self._replaced("constant", node, repr(2 * value or 1.0), inside)
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._replaced("return", value, "None", inside)
            case ast.Slice(lower=lower, upper=upper):
                for bound in (lower, upper):
                    if bound is not None:
                        yield self._replaced("slice", bound, "", inside)
            case ast.Call(args=args, keywords=keywords):
                for one, other in itertools.pairwise(args):
                    if isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id != other.id:
                        yield self._swapped(one, other, inside)
                if keywords and keywords[-1].arg is not None:
                    yield self._without_last(node, inside)

    def _position(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        return self.starts[line - 1] + len(text.encode()[:column].decode())

    def _span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._position(node.lineno, node.col_offset), self._position(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _make(self, kind: str, node: ast.expr, start: int, end: int, new: str, inside: bool) -> Mutant:
        last = node.end_lineno or node.lineno
        first = self.statement or node.lineno
        return Mutant(self.file, kind, node.lineno, last, first, inside, start, end, self.source[start:end], new)

    def _between(self, kind: str, left: ast.expr, right: ast.expr, new: str, inside: bool) -> Mutant:
        """Another operator between two operands, whose parentheses stay as they are."""
        end_of_left, start_of_right = self._span(left)[1], self._span(right)[0]
        gap = self.source[end_of_left:start_of_right]
        before = len(gap) - len(gap.lstrip(" \n)")) if gap.lstrip(" \n)") else 0
        core = gap[before:]
        after = len(core) - len(core.rstrip(" \n("))
        start, end = end_of_left + before, start_of_right - after
        if "#" in gap:
            start, end, new = end_of_left, end_of_left, "§"  # does not parse: a comment stands between them
        return self._make(kind, left, start, end, new, inside)

    def _replaced(self, kind: str, node: ast.AST, new: str, inside: bool) -> Mutant:
        assert isinstance(node, ast.expr)
        return self._make(kind, node, *self._span(node), new, inside)

    def _swapped(self, one: ast.Name, other: ast.Name, inside: bool) -> Mutant:
        start, end = self._span(one)[0], self._span(other)[1]
        between = self.source[self._span(one)[1] : self._span(other)[0]]
        return self._make("argument", one, start, end, f"{other.id}{between}{one.id}", inside)

    def _without_last(self, call: ast.Call, inside: bool) -> Mutant:
        last = call.keywords[-1]
        nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords[:-1]]
        before = [self._span(node)[1] for node in nodes]
        start, end = self._span(last)
        return self._make("argument", last.value, max(before, default=start), end, "", inside)
