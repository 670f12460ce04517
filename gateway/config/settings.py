"""Every setting, its type, range and default. Where a value came from is the business of ``gateway.config.sources``.

Settings are immutable: they are read once at start and handed to whoever needs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Seconds = Annotated[float, Meta(ge=0)]
Timeout = Annotated[float, Meta(gt=0)]  # seconds
Tokens = Annotated[int, Meta(ge=1)]
Positive = Annotated[int, Meta(ge=1)]
SearchMode = Literal["text", "vectors", "both"]


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the gateway listens and what it accepts."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8420
    # Names without port that a request's Host header may carry, besides localhost and the server's own addresses
    # (against DNS rebinding).
    allowed_hosts: list[str] = []
    # Browser origins that may call the API, such as https://hearth.example. The server's own pages need no entry.
    allowed_origins: list[str] = []
    # Addresses or networks of proxies whose X-Forwarded-For is believed. Only the log shows the address found there.
    trusted_proxies: list[str] = field(default_factory=lambda: ["127.0.0.1", "::1"])
    header_timeout_seconds: Timeout = 10.0
    body_timeout_seconds: Timeout = 30.0
    max_body_bytes: Positive = 4 * 1024 * 1024
    max_connections: Positive = 512
    # The web page at /. Without it there is the API alone.
    page: bool = True
    # After SIGTERM open requests get this long to finish.
    shutdown_grace_seconds: Seconds = 10.0


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model runs, how large its context is, and how long an idle host is kept."""

    # A name from the catalog, owner/repository:file of a pulled one, or the path of a GGUF file.
    name: str = "hearth-demo"
    # KV cache cells, shared by all sequences, at least 512. 0: the catalog's value for the model, else 8192, and fewer
    # where memory is short.
    context: Annotated[int, Meta(ge=0, le=1_048_576)] = 0
    # Requests decoded together.
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    # The most tokens of one step, but at least `parallel`. Steps are made smaller where they would take long.
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 512
    # The most draft tokens of one step, taken from earlier text and verified: faster where output repeats input.
    # 0: none.
    drafts: Annotated[int, Meta(ge=0, le=64)] = 8
    # 0: what is fastest for each size of batch, measured when the model is first loaded and adapted afterwards.
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    # The model is unloaded after this long without use. Negative: never.
    idle_seconds: float = 1800.0
    # Loading may take this long.
    start_timeout_seconds: Timeout = 300.0
    # A host that is told to end gets this long, and is killed then.
    stop_grace_seconds: Seconds = 30.0
    # Requests that may wait in the host, besides those being decoded. Further ones get 503.
    max_waiting: Positive = 64
    # KV snapshots of conversations in the data directory, so that the next host need not prefill them again: bytes of
    # all of them together at most. 0: none.
    snapshot_bytes: Annotated[int, Meta(ge=0)] = 4 * 1024 * 1024 * 1024
    # They are written after the host was idle this long, and at its end.
    snapshot_after_seconds: Seconds = 20.0
    # Bytes of memory that must stay free after a model, this one or the embedding model, was loaded; else it gets a
    # smaller KV cache, or loading is refused.
    memory_headroom_bytes: Annotated[int, Meta(ge=0)] = 256 * 1024 * 1024


class EmbeddingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model makes vectors, for search by meaning and for clients. Without one nothing of this runs."""

    # As model.name. "": none.
    model: str = ""
    # The longest text in tokens, at least 64. 0: the catalog's value for the model, else 2048. The model's own limit
    # holds in any case.
    context: Annotated[int, Meta(ge=0, le=65_536)] = 0
    # Of the vectors that are stored and searched. 0: the catalog's value for the model, else all that it makes.
    dimensions: Annotated[int, Meta(ge=0, le=8192)] = 0
    # A vector whose cosine similarity to the query's is less is no hit.
    min_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.25
    # A search waits this long for its query's vector, a start of the model included. Then it goes by words alone, or
    # fails where wiki.search is "vectors".
    search_timeout_seconds: Timeout = 5.0
    # Texts computed together.
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    # The most tokens of one step, unless one text alone has more: bounds how long a query waits for passages that are
    # being indexed.
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 256
    # 0: as many as the machine's cores or the cgroup's limit allow.
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    # As those of [model].
    idle_seconds: float = 600.0
    start_timeout_seconds: Timeout = 120.0
    stop_grace_seconds: Seconds = 10.0
    max_waiting: Positive = 64


class AskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the /ask flow. Where 0 is the default it stands for the catalog's value for the model, else as told."""

    # What the wiki is about; used in the search-term prompt.
    subject: str = "esoteric programming languages"
    # Answers are written by the prompt answer_STYLE, unless a request names another style.
    style: str = "plain"
    # Of the whole answer prompt; else three quarters of the context.
    prompt_tokens: Annotated[int, Meta(ge=0)] = 0
    # Of the answer; else a quarter of the context, at most 1024.
    answer_tokens: Annotated[int, Meta(ge=0)] = 0
    # Pages that are read for a question, of which the best passages are shown; else 5.
    pages: Annotated[int, Meta(ge=0, le=20)] = 0
    # Pages are cut into passages of about this size; else 120.
    passage_tokens: Annotated[int, Meta(ge=0)] = 0
    # A question that leaves less space for pages is refused.
    min_space_tokens: Tokens = 100
    max_question_bytes: Positive = 4096
    deadline_seconds: Timeout = 300.0
    max_concurrent: Positive = 8  # questions at once; more get 503 with Retry-After


class WikiSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where pages come from: the local store, or with ``api_url`` any MediaWiki."""

    # Address of a MediaWiki's api.php, such as https://esolangs.org/w/api.php. Empty: the local store.
    api_url: str = ""
    # The name in api_url, or in the URL given to `hearth import-wiki`, may lead to a private address. For addresses and
    # localhost this is not needed.
    private_address: bool = False
    # Who may be asked about the requests: an address of a page or of a mailbox, for the User-Agent header.
    user_agent_contact: Annotated[str, Meta(pattern=r"^[ -'*-~]{0,200}$")] = ""
    # Numbers of the namespaces that are searched through the API; 0 holds the articles.
    namespaces: Annotated[list[Annotated[int, Meta(ge=0, le=1_000_000)]], Meta(min_length=1)] = field(
        default_factory=lambda: [0]
    )
    # A wiki whose replicas lag further behind refuses requests, which then wait.
    maxlag_seconds: Annotated[int, Meta(ge=1, le=3600)] = 5
    # Base of the citation links of the local store; {title} is the percent-encoded page title.
    page_url: Annotated[str, Meta(pattern=r"\{title\}")] = "https://esolangs.org/wiki/{title}"
    # Load the embedded sample wiki when the local store is empty.
    load_sample: bool = True
    # For each search and each page.
    fetch_timeout_seconds: Timeout = 20.0
    # Pages fetched through the API are kept in the database up to this size, those used last. 0: none are.
    cache_bytes: Annotated[int, Meta(ge=0)] = 64 * 1024 * 1024
    # How the text search finds pages; vectors need an embedding model. "both" is "text" without one.
    search: SearchMode = "both"


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Conversations: when their history is compacted, and what goes into a prompt.

    ``context``, ``ceiling``, ``floor`` and ``answer_tokens`` are tokens. A model with a smaller context has all
    four scaled down alike.
    """

    context: Positive = 12_288  # prompt and reply together
    # Policy `ceiling`: a prompt over this is answered, then the history is compacted …
    ceiling: Positive = 7_800
    floor: Positive = 3_000  # … to about this size, which summaries of every policy aim at
    # Policy `ceiling`: the last messages, of both sides, that stay as they are.
    verbatim_messages: Positive = 8
    answer_tokens: Positive = 1_024
    # Of conversations that name none, but for the kinds `code` (rounds) and `channel` (window).
    policy: Literal["ceiling", "rounds", "window", "conversations"] = "ceiling"
    # Policy `rounds`: when the sum of both is reached, all rounds but the retained ones are summarized.
    rounds_to_compress: Positive = 2
    rounds_to_retain: Positive = 3
    # Policies `window` and `conversations`: when a window is full of messages, about this many of the oldest are
    # summarized.
    window_messages: Positive = 50
    window_summarized: Positive = 40
    # Policy `conversations`: a silence longer than this ends an episode, as a change of all participants does.
    episode_gap_seconds: Seconds = 3600.0
    # Policy `conversations`: when this many summaries wait, that many of the oldest are folded into the reflection.
    reflection_after: Positive = 15
    reflection_folds: Positive = 10
    # Days, and with them the tiers of a summary and the tasks of a day, begin in this time zone. "": the machine's.
    time_zone: str = ""
    # A message that comes during a compaction waits for it if its estimated end is this close, else stops it.
    patience_seconds: Annotated[float, Meta(ge=0, le=60)] = 2.0
    # Facts and task updates are read from each exchange when the model is idle.
    facts: bool = True
    tasks: bool = True
    # Limits of the newest facts in a prompt: their number, and their tokens. Recalled facts get a quarter of the tokens
    # in addition.
    facts_in_prompt: Annotated[int, Meta(ge=0, le=200)] = 12
    fact_tokens: Annotated[int, Meta(ge=0)] = 400
    task_tokens: Annotated[int, Meta(ge=0)] = 400


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Structured logs on stderr, and the request record in the database."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    json: bool = False
    # The oldest request records are deleted when there are more, or when all together take more bytes. The newest one
    # is always kept.
    max_records: Positive = 20_000
    max_record_bytes: Positive = 512 * 1024 * 1024


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration."""

    data_dir: Path
    server: ServerSettings = ServerSettings()
    model: ModelSettings = ModelSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    ask: AskSettings = AskSettings()
    wiki: WikiSettings = WikiSettings()
    memory: MemorySettings = MemorySettings()
    log: LogSettings = LogSettings()

    @property
    def database_path(self) -> Path:
        """The SQLite file, which the server and the command line open."""
        return self.data_dir / "hearth.db"

    @property
    def prompts_dir(self) -> Path:
        """The user's own prompt files; it may not exist."""
        return self.data_dir / "prompts"

    @property
    def thread_plan_dir(self) -> Path:
        """Where it is kept how many threads are fastest for each model."""
        return self.data_dir / "threads"
