"""Every setting, its type, range and default. Where a value came from is the business of ``gateway.config``.

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
    # Names a request's Host header may carry, besides the bound address and localhost (DNS rebinding).
    allowed_hosts: list[str] = []
    # Browser origins that may call the API. The server's own pages need no entry.
    allowed_origins: list[str] = []
    # Addresses or networks of proxies that are believed when they say who calls (X-Forwarded-For), in the log alone.
    trusted_proxies: list[str] = field(default_factory=lambda: ["127.0.0.1", "::1"])
    header_timeout_seconds: Timeout = 10.0
    body_timeout_seconds: Timeout = 30.0
    max_body_bytes: Positive = 4 * 1024 * 1024
    max_connections: Positive = 512
    # The web page at /. Without it there is the API alone.
    page: bool = True
    shutdown_grace_seconds: Seconds = 10.0


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model runs, how large its context is, and how long an idle host is kept."""

    # A name from the catalog, or the path of a GGUF file.
    name: str = "hearth-demo"
    # KV cache cells, shared by all sequences. 0: the catalog's value for the model, else 8192.
    context: Annotated[int, Meta(ge=0, le=1_048_576)] = 0
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    # Tokens decoded in one step at most. Steps are made smaller where they would take long.
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 512
    # Tokens of a step that are guessed from earlier text and checked: faster where output repeats input. 0: none.
    drafts: Annotated[int, Meta(ge=0, le=64)] = 8
    # 0: as many as the machine's cores or the cgroup's limit allow.
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    # Negative: never let an idle host go.
    idle_seconds: float = 1800.0
    start_timeout_seconds: Timeout = 300.0
    stop_grace_seconds: Seconds = 30.0
    # Requests waiting in the host before further ones are refused with 503.
    max_waiting: Positive = 64
    # Conversations are saved to disk as the model saw them, so that a host that was let go need not read them again:
    # in the data directory, this many bytes at most (0: never), after so many idle seconds.
    snapshot_bytes: Annotated[int, Meta(ge=0)] = 4 * 1024 * 1024 * 1024
    snapshot_after_seconds: Seconds = 20.0
    # Share of the free memory that a model may need before loading is refused.
    memory_headroom_bytes: Annotated[int, Meta(ge=0)] = 256 * 1024 * 1024


class EmbeddingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model makes vectors, for search by meaning and for clients. Without one nothing of this runs."""

    # A name from the catalog, or the path of a GGUF file. "": none.
    model: str = ""
    # The longest text in tokens. 0: the catalog's value for the model, else 2048.
    context: Annotated[int, Meta(ge=0, le=65_536)] = 0
    # Of the vectors that are stored and searched. 0: the catalog's value for the model, else all that it makes.
    dimensions: Annotated[int, Meta(ge=0, le=8192)] = 0
    # A vector whose cosine similarity to the query's is less is no hit.
    min_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.25
    # A search waits this long for its query's vector, a start of the model included, and then does without.
    search_timeout_seconds: Timeout = 5.0
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    # Tokens computed in one step at most: bounds how long a query waits for a passage that is being indexed.
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 256
    # 0: as many as the machine's cores or the cgroup's limit allow.
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    # Negative: never let an idle host go.
    idle_seconds: float = 600.0
    start_timeout_seconds: Timeout = 120.0
    stop_grace_seconds: Seconds = 10.0
    max_waiting: Positive = 64


class AskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the /ask flow. 0 means: the catalog's value for the loaded model, else derived from its context."""

    # What the wiki is about; used in the search-term prompt.
    subject: str = "esoteric programming languages"
    style: str = "plain"
    prompt_tokens: Annotated[int, Meta(ge=0)] = (
        0  # whole answer prompt; default three quarters of the context
    )
    answer_tokens: Annotated[int, Meta(ge=0)] = 0  # default one quarter, at most 1024
    pages: Annotated[int, Meta(ge=0, le=20)] = 0  # top K per search term; default 3
    passage_tokens: Annotated[int, Meta(ge=0)] = (
        0  # background is cut into passages of about this size; default 120
    )
    min_space_tokens: Tokens = 100  # stop looking for pages when less prompt space is left
    max_question_bytes: Positive = 4096
    deadline_seconds: Timeout = 300.0
    max_concurrent: Positive = 8  # questions at once; more get 503 with Retry-After


class WikiSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where pages come from: the local store, or with ``api_url`` any MediaWiki."""

    # Address of a MediaWiki's api.php, such as https://esolangs.org/w/api.php. Empty: the local store.
    api_url: str = ""
    # The name in api_url may lead to a private address. Addresses and localhost need no leave.
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
    fetch_timeout_seconds: Timeout = 20.0
    # Pages fetched through the API are kept in the database up to this size, those used last. 0: none are.
    cache_bytes: Annotated[int, Meta(ge=0)] = 64 * 1024 * 1024
    # How the text search finds pages; vectors need an embedding model. "both" is "text" without one.
    search: SearchMode = "both"


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Conversations: when their history is compacted, and what goes into a prompt.

    The first three numbers are tokens. A model with a smaller context has all three scaled down alike.
    """

    context: Positive = 12_288  # prompt and reply together
    ceiling: Positive = 7_800  # a prompt over this is answered, then the history is compacted …
    floor: Positive = 3_000  # … to about this size
    verbatim_messages: Positive = 8  # the last messages are never compacted, both sides counted
    answer_tokens: Positive = 1_024
    policy: Literal["ceiling", "rounds", "window", "conversations"] = "ceiling"
    rounds_to_compress: Positive = 2
    rounds_to_retain: Positive = 3
    window_messages: Positive = 50
    window_summarized: Positive = 40
    # A silence longer than this ends an episode, as a change of participants does.
    episode_gap_seconds: Seconds = 3600.0
    # With this many conversation summaries waiting, the oldest ones are folded into the reflection.
    reflection_after: Positive = 15
    reflection_folds: Positive = 10
    # Days, and with them the tiers of a summary, begin in this time zone ("" = the machine's).
    time_zone: str = ""
    # A message that comes during a compaction waits for one that seems to end within so many seconds, and stops others.
    patience_seconds: Annotated[float, Meta(ge=0, le=60)] = 2.0
    # Facts and task updates are read from each exchange when the model is idle.
    facts: bool = True
    tasks: bool = True
    facts_in_prompt: Annotated[int, Meta(ge=0, le=200)] = 12
    fact_tokens: Annotated[int, Meta(ge=0)] = 400
    task_tokens: Annotated[int, Meta(ge=0)] = 400


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Structured logs on stderr, and the request record in the database."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    json: bool = False
    # Oldest request records go when there are more than this, or when they take more bytes than this.
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
