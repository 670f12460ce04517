"""Prompt files: a TOML header between ``+++`` lines, then text with ``{{variable}}`` placeholders.

The program's files are in ``prompts/``. Files in the data directory's ``prompts`` replace those of the same name, or
add further prompts. A prompt ``answer_<style>`` is an answer style. Other versions of a prompt are in files
``<name>@<version>.md``, for comparisons and conversions; a replaced file of the program remains as another version.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from gateway.base.errors import ConfigurationError, InvalidRequestError, NotFoundError
from gateway.base.resources import bundled
from gateway.base.structs import view
from model_host.protocol import Lane, Message, Sampling, TextPart

_FENCE = "+++"
_AT = "@"  # between name and version in file names
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_STYLE_PREFIX = "answer_"


class _Output(Struct, frozen=True, forbid_unknown_fields=True):
    schema: dict[str, Any] | None = None
    grammar: str | None = None


class _Sampling(Sampling, frozen=True, forbid_unknown_fields=True):
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None


class _Header(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
    version: Annotated[int, Meta(ge=1)]
    lane: Lane
    variables: list[str] = []
    sampling: _Sampling = _Sampling()
    output: _Output = _Output()


class Prompt(Struct, frozen=True, kw_only=True):
    """A prompt. With ``max_tokens`` None, the caller sets the limit; at most one of schema and grammar is set.

    ``pieces`` alternates text and names of variables, beginning and ending with text.
    """

    name: str
    version: int
    lane: Lane
    variables: tuple[str, ...]
    sampling: Sampling
    pieces: tuple[str, ...]
    max_tokens: int | None = None
    schema: dict[str, Any] | None = None
    grammar: str | None = None

    def render(self, shared: Collection[str] = (), **values: str) -> list[Message]:
        """The prompt as one user message with its variables filled in. Placeholders in values are plain text.

        The prompt's text and the variables in ``shared`` may be a cached prefix for other owners. Raises
        InvalidRequestError when a variable is missing or unknown.
        """
        self._check(values)
        self._check_known(shared)
        parts = []
        for index, piece in enumerate(self.pieces):
            is_text = index % 2 == 0
            part = TextPart(piece, True) if is_text else TextPart(values[piece], piece in shared)
            if part.text:
                parts.append(part)
        return [Message("user", parts)]

    def _check(self, values: Mapping[str, str]) -> None:
        self._check_known(values)
        missing = [name for name in self.variables if name not in values]
        if missing:
            raise InvalidRequestError(
                f"the prompt `{self.name}` needs a value for `{missing[0]}`", param=missing[0]
            )

    def _check_known(self, names: Collection[str]) -> None:
        unknown = sorted(set(names) - set(self.variables))
        if unknown:
            has = ", ".join(self.variables) or "none"
            raise InvalidRequestError(
                f"the prompt `{self.name}` has no variable `{unknown[0]}` (it has: {has})", param=unknown[0]
            )


class PromptSet:
    """Prompts by name: the version of each in use, and ``others``."""

    def __init__(self, prompts: Collection[Prompt], others: Collection[Prompt] = ()) -> None:
        self._prompts = {prompt.name: prompt for prompt in prompts}
        self._versions = {(prompt.name, prompt.version): prompt for prompt in (*others, *prompts)}

    def names(self) -> list[str]:
        return sorted(self._prompts)

    def get(self, name: str) -> Prompt:
        """The prompt of that name. Raises NotFoundError, which lists the names."""
        prompt = self._prompts.get(name)
        if prompt is None:
            raise NotFoundError(f"there is no prompt `{name}`; there are: {', '.join(self.names())}")
        return prompt

    def version(self, name: str, version: int, param: str | None = None) -> Prompt:
        """A version of the prompt of that name. Raises NotFoundError, or InvalidRequestError, which lists the versions.

        ``param`` is the request field that named the version.
        """
        used = self.get(name).version
        prompt = self._versions.get((name, version))
        if prompt is None:
            there = ", ".join(
                str(known) for known_name, known in sorted(self._versions) if known_name == name
            )
            raise InvalidRequestError(
                f"the prompt `{name}` exists in version {there} ({used} is in use), not in {version}; put it into "
                f"the data directory's folder `prompts` as `{name}@{version}.md`",
                param=param,
            )
        return prompt

    def with_version(self, version: int) -> PromptSet:
        """The same prompts, with ``version`` in use of those that have it."""
        used = [self._versions.get((name, version), prompt) for name, prompt in self._prompts.items()]
        return PromptSet(used, list(self._versions.values()))

    def styles(self) -> list[str]:
        return [name.removeprefix(_STYLE_PREFIX) for name in self.names() if name.startswith(_STYLE_PREFIX)]

    def style(self, style: str) -> Prompt:
        """The answer prompt of a style. Raises InvalidRequestError, which lists the styles."""
        if style not in self.styles():
            raise InvalidRequestError(
                f"there is no answer style `{style}`; there are: {', '.join(self.styles())}", param="style"
            )
        return self._prompts[_STYLE_PREFIX + style]


def load_prompts(extra: Path | None = None) -> PromptSet:
    """The program's prompts, replaced and extended by those of the folder ``extra``, which may not exist.

    Raises ConfigurationError with the file and its problem.
    """
    used: dict[str, Prompt] = {}
    others: list[Prompt] = []
    for folder in (bundled("prompts"), extra):
        for path in _files(folder) if folder is not None else ():
            prompt = read_prompt(path)
            if _AT in path.stem:
                others.append(prompt)
            else:
                others += [used[prompt.name]] if prompt.name in used else []
                used[prompt.name] = prompt
    for prompt in others:
        if prompt.name not in used:
            raise ConfigurationError(
                f"the file of version {prompt.version} of the prompt `{prompt.name}` needs a `{prompt.name}.md` beside "
                "it, the version in use"
            )
    return PromptSet(list(used.values()), others)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigurationError(f"the folder of prompts {folder} cannot be read: {error.strerror}") from None


def read_prompt(path: Path) -> Prompt:
    """Read a prompt file. Raises ConfigurationError with the file and the key or line at fault."""
    try:
        front, body, body_line = _split(path.read_text(encoding="utf-8"))
        header = msgspec.convert(tomllib.loads(front), _Header)
        pieces = _pieces(body, body_line, header.variables)
        _check_file_name(path.stem, header)
        if header.output.schema is not None and header.output.grammar is not None:
            raise ValueError("`output` has both `schema` and `grammar`; give one of them")
    except (OSError, ValueError) as error:  # errors of TOML, UTF-8 and msgspec are ValueErrors
        raise ConfigurationError(f"the prompt file {path}: {error}") from None
    sampling = msgspec.structs.asdict(header.sampling)
    return view(
        Prompt,
        header,
        variables=tuple(header.variables),
        max_tokens=sampling.pop("max_tokens"),
        sampling=Sampling(**sampling),
        pieces=pieces,
        schema=header.output.schema,
        grammar=header.output.grammar,
    )


def _check_file_name(stem: str, header: _Header) -> None:
    """``<name>``, or ``<name>@<version>`` for a version that is not in use."""
    name, at, version = stem.partition(_AT)
    if header.name != name:
        raise ValueError(f"`name` is `{header.name}`, but the file's name says `{name}`")
    if at and version != str(header.version):
        raise ValueError(f"`version` is {header.version}, but the file's name says `{version}`")


def _split(text: str) -> tuple[str, str, int]:
    """Header, body, and the first line of the body."""
    lines = text.split("\n")
    if lines[0].strip() != _FENCE:
        raise ValueError(f"line 1: a prompt begins with a line `{_FENCE}`")
    ends = [number for number, line in enumerate(lines[1:], 1) if line.strip() == _FENCE]
    if not ends:
        raise ValueError(f"the header is not closed by a second line `{_FENCE}`")
    body = "\n".join(lines[ends[0] + 1 :])
    blank = len(body) - len(body.lstrip("\n"))
    return "\n".join(["", *lines[1 : ends[0]]]), body.strip("\n"), ends[0] + 2 + blank


def _pieces(body: str, first_line: int, variables: list[str]) -> tuple[str, ...]:
    if len(set(variables)) < len(variables):
        raise ValueError("`variables` names one twice")
    pieces = tuple(_PLACEHOLDER.split(body))
    for match in _PLACEHOLDER.finditer(body):
        if match[1] not in variables:
            line = first_line + body.count("\n", 0, match.start())
            raise ValueError(f"line {line}: `{match[0]}` is not declared in `variables`")
    unused = [name for name in variables if name not in pieces[1::2]]
    if unused:
        raise ValueError(f"`variables` declares `{unused[0]}`, which the text does not use")
    for text in pieces[0::2]:
        if "{{" in text:
            raise ValueError("the text has `{{` that begins no `{{variable}}`")
    return pieces
