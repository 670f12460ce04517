"""From the bytes of a file to its facts. The grammars are loaded when the first file of their language is parsed."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from gateway.code.languages.facts import FileFacts

if TYPE_CHECKING:
    from tree_sitter import Parser

_LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
}
_DOCUMENTS = {".md": "markdown", ".markdown": "markdown", ".rst": "rst", ".txt": "text", ".text": "text"}


def language_of(path: str) -> str | None:
    """The language of a file by its name: that of source code, of a document, or None."""
    suffix = posixpath.splitext(path)[1].lower()
    return _LANGUAGES.get(suffix) or _DOCUMENTS.get(suffix)


def is_code(language: str) -> bool:
    return language in _LANGUAGES.values()


def parse(language: str, name: str, source: bytes, secrets: Sequence[str] = ()) -> FileFacts:
    """The facts of a file, without its ``secrets``. Syntax errors cost what the parser cannot make out."""
    root = _parser(language).parse(source).root_node
    if language == "python":
        # Each grammar is imported where its language occurs.
        from gateway.code.languages.python import PythonExtractor

        return PythonExtractor(name, root, secrets).run()
    # As above.
    from gateway.code.languages.script_expressions import JavaScriptExtractor

    return JavaScriptExtractor(name, root, secrets).run()


@cache
def _parser(language: str) -> Parser:
    # Grammars are shared libraries: only those in use are loaded.
    from tree_sitter import Language, Parser

    if language == "python":
        import tree_sitter_python as grammar

        return Parser(Language(grammar.language()))
    if language == "javascript":
        # As above.
        import tree_sitter_javascript

        return Parser(Language(tree_sitter_javascript.language()))
    # As above.
    import tree_sitter_typescript as typescript

    make = typescript.language_tsx if language == "tsx" else typescript.language_typescript
    return Parser(Language(make()))
