"""HTML tables as lines of cells: ``cell | cell | cell``."""

from __future__ import annotations

from gateway.wiki.html.lines import Lines

PARTS = frozenset({"table", "tr", "td", "th", "caption"})
# Inner tables become part of their cell; deeper ones lose their rows, which bounds how often text is copied.
_MAX_DEPTH = 4
_MOST_FRAMED = 2  # rows of a table that frames a text


class Tables:
    """The stack of open tables. ``lines`` receives text: the innermost open cell, else the page."""

    def __init__(self, page: Lines) -> None:
        self.lines = page
        self._page = page
        self._open: list[_Table] = []
        self._too_deep = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def open(self, name: str) -> None:
        if name == "table":
            self._open_table()
        elif not self._open or self._too_deep:
            self.lines.end_line()
        elif name == "tr":
            self._open[-1].end_row()
        else:
            self._open[-1].end_cell()
            self._open[-1].cell = Lines()
            self._open[-1].is_caption = name == "caption"
        self._find_lines()

    def close(self, name: str) -> None:
        if not self._open or self._too_deep:
            self.lines.end_line()
            self._too_deep -= name == "table" and self._too_deep > 0
        elif name == "table":
            table = self._open.pop()
            table.end_row()
            self._find_lines()
            if self._open:
                self.lines.add_text(" " + "; ".join(table.rows) + " ")
            elif table.is_box:
                for row in table.rows:
                    self.lines.end_line()
                    self.lines.add_text(row.strip(" |"))
                self.lines.end_line()
            else:
                self.lines.add_rows(table.rows)
        elif name == "tr":
            self._open[-1].end_row()
        else:
            self._open[-1].end_cell()
        self._find_lines()

    def _open_table(self) -> None:
        if self._too_deep or len(self._open) == _MAX_DEPTH:
            self._too_deep += 1
            self.lines.end_line()
            return
        if self._open and self._open[-1].cell is None:  # outside of a cell: not part of the open row
            self._open[-1].end_row()
        self._open.append(_Table())

    def _find_lines(self) -> None:
        cells = (table.cell for table in reversed(self._open) if table.cell is not None)
        self.lines = next(cells, self._page)


class _Table:
    def __init__(self) -> None:
        self.rows: list[str] = []  # complete ones
        self.cell: Lines | None = None  # the open one
        self.is_caption = False
        self._cells: list[str] = []
        self._most_filled = 0  # cells of a row that have a text

    @property
    def is_box(self) -> bool:
        """Whether it frames a text, as the notes of DocBook: a picture, a title and a paragraph."""
        return self._most_filled == 1 and len(self.rows) <= _MOST_FRAMED

    def end_cell(self) -> None:
        if self.cell is None:
            return
        text, self.cell = self.cell.joined(), None
        if not self.is_caption:
            self._cells.append(text)
        elif text:
            self.rows.append(text)

    def end_row(self) -> None:
        self.end_cell()
        if any(self._cells):
            self.rows.append(" | ".join(self._cells))
            self._most_filled = max(self._most_filled, sum(map(bool, self._cells)))
        self._cells = []
