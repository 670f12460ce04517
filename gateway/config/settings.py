"""All settings with types, ranges and defaults. They are immutable and read once, at start."""

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
    """The gateway's address and its limits."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8420
    # Names without port that the Host header may have, besides localhost and the server's addresses (against DNS
    # rebinding).
    allowed_hosts: list[str] = []
    # Browser origins that may call the API, such as https://hearth.example. The server's own page needs no entry.
    allowed_origins: list[str] = []
    # Addresses or networks of proxies whose X-Forwarded-For is trusted, for the log.
    trusted_proxies: list[str] = field(default_factory=lambda: ["127.0.0.1", "::1"])
    header_timeout_seconds: Timeout = 10.0
    body_timeout_seconds: Timeout = 30.0
    max_body_bytes: Positive = 4 * 1024 * 1024
    max_connections: Positive = 512
    # Serve the web page at /.
    page: bool = True
    # A request that names a model which is not here is served by the one that is, and the reply names that; or it is
    # refused.
    unknown_models: Literal["serve", "refuse"] = "serve"
    # Time for open requests to finish after SIGTERM.
    shutdown_grace_seconds: Seconds = 10.0


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The model, its context, and the life of its host."""

    # A name from the catalog, owner/repository:file of a pulled one, or the path of a GGUF file. "": the small model
    # that `hearth pull` gets if it is here, else the built-in one.
    name: str = ""
    # Other names that requests may use for it.
    aliases: list[str] = []
    # Paths of GGUF files with LoRA adapters of this model, relative to the configuration file. A request names one as
    # MODEL:FILE, without the file's ending.
    adapters: list[str] = []
    # KV cache cells, shared by all sequences, at least 512. 0: the catalog's value for the model, else 8192; fewer if
    # memory is short.
    context: Annotated[int, Meta(ge=0, le=1_048_576)] = 0
    # Requests decoded together.
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    # Maximum tokens of one step, at least `parallel`. Steps are smaller if they would take long.
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 512
    # Maximum draft tokens of one step, taken from earlier text and verified: faster if output repeats input. 0: none.
    drafts: Annotated[int, Meta(ge=0, le=64)] = 8
    # 0: the fastest number for each batch size, measured at the first load of the model and adapted to the load of the
    # machine.
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    # The model is unloaded after this long without use. Negative: never.
    idle_seconds: float = 1800.0
    # Limit of the time to load the model.
    start_timeout_seconds: Timeout = 300.0
    # Time for the host to end on request; then it is killed.
    stop_grace_seconds: Seconds = 30.0
    # Requests that may wait in the host, besides those in the batch. Further ones get 503.
    max_waiting: Positive = 64
    # Maximum size of all KV snapshots of conversations in the data directory, from which the next host restores them
    # instead of prefilling again. 0: none.
    snapshot_bytes: Annotated[int, Meta(ge=0)] = 4 * 1024 * 1024 * 1024
    # The same for text that all users share, such as wiki pages and system prompts. Those used most are kept.
    shared_snapshot_bytes: Annotated[int, Meta(ge=0)] = 1024 * 1024 * 1024
    # Idle time of the host after which snapshots are written; they are also written at its end.
    snapshot_after_seconds: Seconds = 20.0
    # Memory that must stay free after a load of this or the embedding model; otherwise the KV cache is made smaller, or
    # the load is refused.
    memory_headroom_bytes: Annotated[int, Meta(ge=0)] = 256 * 1024 * 1024


class UpstreamSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """OpenAI-compatible servers in place of local models: llama-server, vLLM, Ray Serve or another hearth."""

    # Base URLs of servers with the same chat model, such as http://10.0.0.2:8000. Empty: the local model answers.
    urls: list[str] = []
    # API key for all of them; HEARTH_UPSTREAM__KEY_FILE names a file with it. "": none.
    key: str = ""
    # The model's name there. A name of the catalog also gives the flows that model's defaults.
    model: str = ""
    # Maximum tokens of a request with its reply. 0: what the servers report.
    context: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    # As model.name: a model with the same tokenizer and chat template, loaded here to count tokens for servers that
    # cannot. "": the servers count.
    tokenizer: str = ""
    # Requests of the background lane (summaries, facts, tasks) at once to each server, so that chats stay ahead.
    background: Positive = 1
    # A server that sends nothing for this long has failed; a prompt on a CPU may take minutes.
    silence_seconds: Timeout = 300.0
    # Base URLs of servers for `embedding.model` and for `rerank.model`, which then are names there. Empty: local.
    embedding_urls: list[str] = []
    rerank_urls: list[str] = []


class StoreSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where keys, the request log, conversations, facts and tasks are."""

    # A PostgreSQL database (hearth[postgres]), such as postgresql://hearth@10.0.0.4/hearth; HEARTH_STORE__URL_FILE
    # names a file with it. "": the SQLite file of the data directory, where pages and code are in any case.
    url: str = ""


class EmbeddingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedding model, for search by vectors and for clients."""

    # As model.name. "": none.
    model: str = ""
    aliases: list[str] = []
    # Maximum tokens of a text, at least 64. 0: the catalog's value for the model, else 2048. The model's own limit
    # applies, too.
    context: Annotated[int, Meta(ge=0, le=65_536)] = 0
    # Dimensions of stored vectors. 0: the catalog's value for the model, else all.
    dimensions: Annotated[int, Meta(ge=0, le=8192)] = 0
    # Minimum cosine similarity of a hit to the query.
    min_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.25
    # Limit of the time to embed a query, a start of the model included. Then the search uses words alone, or fails if
    # wiki.search is "vectors".
    search_timeout_seconds: Timeout = 5.0
    # Texts computed together.
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    # Maximum tokens of one step, unless a single text has more. It bounds how long a query waits for passages that are
    # being indexed.
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 256
    # 0: the number of cores, within the cgroup's limit; half of it while other processes use them.
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    # As in [model].
    idle_seconds: float = 600.0
    start_timeout_seconds: Timeout = 120.0
    stop_grace_seconds: Seconds = 10.0
    max_waiting: Positive = 64


class RerankSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The reranker, for /v1/rerank and for the passages of /ask. Fields as in [embedding]."""

    # As model.name; a cross encoder with rank pooling. "": none.
    model: str = ""
    aliases: list[str] = []
    # Maximum tokens of a query with a document, at least 64. 0: the catalog's value for the model, else 2048. The
    # model's own limit applies, too.
    context: Annotated[int, Meta(ge=0, le=65_536)] = 0
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    chunk: Annotated[int, Meta(ge=8, le=4096)] = 512
    threads: Annotated[int, Meta(ge=0, le=512)] = 0
    idle_seconds: float = 600.0
    start_timeout_seconds: Timeout = 120.0
    stop_grace_seconds: Seconds = 10.0
    max_waiting: Positive = 64


class AskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the /ask flow. A default of 0 is the catalog's value for the model, otherwise what the comment says."""

    # Subject of the wiki, for the prompt that makes search terms. Empty: the wiki's own name.
    subject: str = ""
    # Default style: answers use the prompt answer_STYLE.
    style: str = "plain"
    # A question should take this long once the model is loaded: prompt, page summaries and answer are sized by the
    # model's measured speed, and so are facts in the first prompt of a conversation. 0: no limit by time.
    target_seconds: Seconds = 20.0
    # Of the whole answer prompt, whatever the time; else three quarters of the context, and less where time is short.
    prompt_tokens: Annotated[int, Meta(ge=0)] = 0
    # Maximum tokens of the answer; else a quarter of the context, at most 1024.
    answer_tokens: Annotated[int, Meta(ge=0)] = 0
    # Pages that are read for a question, of which the best passages are shown; else 5.
    pages: Annotated[int, Meta(ge=0, le=20)] = 0
    # Approximate size of the passages of a page; else 120.
    passage_tokens: Annotated[int, Meta(ge=0)] = 0
    # A question that leaves less space for pages is rejected.
    min_space_tokens: Tokens = 100
    max_question_bytes: Positive = 4096
    deadline_seconds: Timeout = 300.0
    max_concurrent: Positive = 8  # questions at once; more get 503 with Retry-After


class WikiSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The source of pages: the local store, or a MediaWiki at ``api_url``."""

    # URL of a MediaWiki's api.php, such as https://esolangs.org/w/api.php. "": the local store.
    api_url: str = ""
    # The host name in api_url, or in the URL for `hearth import-wiki`, may resolve to a private address. IP addresses
    # and localhost need no permission.
    private_address: bool = False
    # Contact for the User-Agent header: a URL or an e-mail address.
    user_agent_contact: Annotated[str, Meta(pattern=r"^[ -'*-~]{0,200}$")] = ""
    # Numbers of the namespaces to search through the API; 0 is that of articles.
    namespaces: Annotated[list[Annotated[int, Meta(ge=0, le=1_000_000)]], Meta(min_length=1)] = field(
        default_factory=lambda: [0]
    )
    # Maximum replication lag; with a longer one the wiki rejects requests, which then wait.
    maxlag_seconds: Annotated[int, Meta(ge=1, le=3600)] = 5
    # Base of the citation links of the local store; {title} is the percent-encoded page title. Empty: the address that
    # the import's export names.
    page_url: Annotated[str, Meta(pattern=r"^$|\{title\}")] = ""
    # Load the embedded sample wiki when the local store is empty.
    load_sample: bool = True
    # For each request to the wiki.
    fetch_timeout_seconds: Timeout = 20.0
    # Maximum size of the cache of pages fetched through the API. 0: no cache.
    cache_bytes: Annotated[int, Meta(ge=0)] = 64 * 1024 * 1024
    # How the search finds pages by their text. Without an embedding model "both" is the same as "text".
    search: SearchMode = "both"


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Conversations: compaction of their history, and the content of prompts.

    ``context``, ``ceiling``, ``floor`` and ``answer_tokens`` are in tokens, scaled down for a model with a smaller
    context.
    """

    context: Positive = 12_288  # prompt and reply together
    # Policy `ceiling`: after a prompt over this size, the history is compacted.
    ceiling: Positive = 7_800
    # Target size of a prompt after a compaction, for all policies.
    floor: Positive = 3_000
    # Policy `ceiling`: number of the last messages, of both sides, that are not summarized.
    verbatim_messages: Positive = 8
    answer_tokens: Positive = 1_024
    # From here on a reply ends with its sentence, unless its message has `max_tokens` or the conversation is of the
    # kind `code`. 0: at most 160 tokens, or what is written within `ask.target_seconds`, with models under 700 MB; none
    # with others.
    reply_tokens: Annotated[int, Meta(ge=0)] = 0
    # Default policy of conversations, except those of the kinds `code` (rounds) and `channel` (window).
    policy: Literal["ceiling", "rounds", "window", "conversations"] = "ceiling"
    # Policy `rounds`: at the sum of both, all rounds except the retained ones are summarized.
    rounds_to_compress: Positive = 2
    rounds_to_retain: Positive = 3
    # Policies `window` and `conversations`: when a window is full, about this many of its oldest messages are
    # summarized.
    window_messages: Positive = 50
    window_summarized: Positive = 40
    # Policy `conversations`: a longer silence, or a change of all participants, ends an episode.
    episode_gap_seconds: Seconds = 3600.0
    # When `reflection_after` summaries of an assistant's conversations wait, the oldest `reflection_folds` are folded
    # into its reflection.
    reflection_after: Positive = 15
    reflection_folds: Positive = 10
    # Time zone of days, for the tiers of summaries and the tasks of a day. "": the machine's.
    time_zone: str = ""
    # A message that arrives during a compaction waits for it if it should end within this time; otherwise it stops it.
    patience_seconds: Annotated[float, Meta(ge=0, le=60)] = 2.0
    # Share of the machine's time for bringing the summary of a whole conversation up to date after each exchange, while
    # no request waits: a continuation then begins at once. 0: only when it is needed.
    fresh_share: Annotated[float, Meta(ge=0, le=1)] = 0.1
    # Extract facts and changes of tasks from each exchange while the model is idle.
    facts: bool = True
    tasks: bool = True
    # Limits of the newest facts in a prompt. Recalled facts get an additional quarter of the tokens.
    facts_in_prompt: Annotated[int, Meta(ge=0, le=200)] = 12
    fact_tokens: Annotated[int, Meta(ge=0)] = 400
    task_tokens: Annotated[int, Meta(ge=0)] = 400
    # How long a secret that was taken out of a message is held in memory, for its reply and for /keep. 0: not at all.
    keep_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 600.0
    # Limit of the quotes from older messages that the last message recalls, at most an eighth of the prompt. 0: none.
    recall_tokens: Annotated[int, Meta(ge=0)] = 300


class McpSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The tools for other programs' models, at /mcp and by `hearth mcp`."""

    # Offer the tools that write too: `remember` and `add_task`.
    write: bool = False


class McpServer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A server of the Model Context Protocol: a program that is started for each call, or a Streamable HTTP address."""

    # Its tools are called NAME.TOOL.
    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    # The tools that steps may call, and what each does: "untrusted" (reads text of others), "private" (reads your
    # data), "effect".
    tools: dict[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")],
        list[Literal["untrusted", "private", "effect"]],
    ]
    command: list[str] = []
    # Variables of the program, besides PATH, HOME and the like.
    env: dict[str, str] = {}
    url: str = ""
    # A file with the address's key.
    key_file: str = ""
    # Run the program under bubblewrap, if that is installed; then it sees the system's programs, these paths, and a
    # network only with `network`.
    sandbox: bool = True
    read: list[str] = []
    write: list[str] = []
    network: bool = False
    # Limits of a call.
    seconds: Timeout = 30.0
    max_bytes: Positive = 1024 * 1024


class TaskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Runs of tasks: their limits, after which they ask whether to go on, and where they may fetch from."""

    max_steps: Positive = 24
    # Of the model, in prompts and replies together.
    max_tokens: Positive = 50_000
    # Of work; waiting for a time or an answer is not counted.
    max_seconds: Timeout = 1800.0
    # Maximum length of a step's result.
    result_characters: Annotated[int, Meta(ge=200, le=100_000)] = 4000
    # Time to answer a BREAKPOINT.
    answer_days: Annotated[float, Meta(gt=0, le=3650)] = 7.0
    # Hosts from which `http_get` may fetch, with the port if it is not the usual one, such as api.example.org. Empty:
    # there is no `http_get`.
    http_hosts: list[Annotated[str, Meta(pattern=r"^[a-z0-9_.:\[\]-]{1,255}$")]] = []
    # Address that gets every notice as a signed POST request. "": none.
    webhook_url: str = ""
    # The key of the signatures.
    webhook_secret: str = ""
    # MCP servers whose tools steps may call, each a table [[tasks.servers]].
    servers: list[McpServer] = []


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Structured logs on stderr, and the request record in the database."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    json: bool = False
    # Beyond these limits the oldest request records are deleted, except the newest one.
    max_records: Positive = 20_000
    max_record_bytes: Positive = 512 * 1024 * 1024


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    data_dir: Path
    server: ServerSettings = ServerSettings()
    model: ModelSettings = ModelSettings()
    upstream: UpstreamSettings = UpstreamSettings()
    store: StoreSettings = StoreSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    ask: AskSettings = AskSettings()
    wiki: WikiSettings = WikiSettings()
    memory: MemorySettings = MemorySettings()
    mcp: McpSettings = McpSettings()
    tasks: TaskSettings = TaskSettings()
    log: LogSettings = LogSettings()

    @property
    def database_path(self) -> Path:
        return self.data_dir / "hearth.db"

    @property
    def prompts_dir(self) -> Path:
        """The folder of the user's prompt files; it may not exist."""
        return self.data_dir / "prompts"

    @property
    def thread_plan_dir(self) -> Path:
        """The folder of the measured numbers of threads for each model."""
        return self.data_dir / "threads"
