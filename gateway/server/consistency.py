"""Checks for settings that contradict each other or the files of this machine.

With such settings, a server would start but fail every request. The server rejects them at start, `hearth config show`
and `hearth doctor` report them. ``gateway.config.sources`` checks the range of single values.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from gateway.ask.limits import effective_limits
from gateway.base.errors import ConfigurationError
from gateway.config.settings import ServerSettings, Settings
from gateway.config.sources import flatten
from gateway.memory.planning.budget import MIN_CONTEXT, time_zone
from gateway.models.catalog import Catalog, ResolvedModel, models_beside, resolve_model, tokenizer_settings
from gateway.models.gguf_header import chat_template, header_pairs, is_gguf
from gateway.models.prompts import PromptSet, load_prompts
from gateway.wiki.remote.addresses import api_address

# A query with its task prompt does not fit a smaller context.
_LEAST_EMBEDDING_CONTEXT = 64
_RANK = 4  # LLAMA_POOLING_TYPE_RANK
_ADAPTER_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_HOST_NAME = re.compile(r"[^\s:/\\@*\[\]]+")


def check(settings: Settings, prompts: PromptSet, model: ResolvedModel | None) -> None:
    """Raise ConfigurationError with a line for each contradiction. ``model`` is None if it is not local."""
    found = [*contradictions(settings), *_of_prompts(settings, prompts)]
    if model is not None:
        found += _of_model(settings, model)
    for resolve in models_beside(settings):
        found += _of_file(resolve(settings))
    found += _of_tokenizer(settings)
    if found:
        raise ConfigurationError("\n".join(found), code="contradictory_settings")


def problems(settings: Settings) -> list[str]:
    """The reasons why a server with these settings would not start, with remedies."""
    found = list(contradictions(settings))
    looks: list[Callable[[], Iterator[str]]] = [
        lambda: _of_prompts(settings, load_prompts(settings.prompts_dir)),
        lambda: iter(()) if settings.upstream.urls else _of_model(settings, resolve_model(settings)),
        *(partial(lambda resolve: _of_file(resolve(settings)), each) for each in models_beside(settings)),
        lambda: _of_tokenizer(settings),
    ]
    for look in looks:
        try:
            found += look()
        except ConfigurationError as error:
            found.append(error.message)
    return found


def contradictions(settings: Settings) -> Iterator[str]:
    """The contradictions between settings, without looking at files."""
    yield from _of_memory(settings)
    yield from _of_server(settings.server)
    yield from _of_search(settings)
    yield from _of_upstream(settings)
    if settings.ask.max_question_bytes > settings.server.max_body_bytes:
        yield _lower_or_raise(settings, "ask.max_question_bytes", "server.max_body_bytes")
    if settings.ask.target_seconds > settings.ask.deadline_seconds:
        yield _lower_or_raise(settings, "ask.target_seconds", "ask.deadline_seconds")


def _of_memory(settings: Settings) -> Iterator[str]:
    memory = settings.memory
    prompt = memory.context - memory.answer_tokens
    room = (
        f"memory.context ({memory.context}) less memory.answer_tokens ({memory.answer_tokens}) leaves "
        f"{max(0, prompt)} tokens for a prompt"
    )
    if memory.floor >= memory.ceiling:
        yield _lower_or_raise(settings, "memory.floor", "memory.ceiling")
    if memory.ceiling >= prompt:
        yield (
            f"memory.ceiling is {memory.ceiling}, but {room}: lower memory.ceiling or memory.answer_tokens, or raise "
            "memory.context"
        )
    if memory.fact_tokens + memory.task_tokens >= prompt:
        yield (
            f"memory.fact_tokens is {memory.fact_tokens} and memory.task_tokens is {memory.task_tokens}, but {room}: "
            "lower them, or raise memory.context"
        )
    if memory.window_summarized >= memory.window_messages:
        yield _lower_or_raise(settings, "memory.window_summarized", "memory.window_messages")
    if memory.reflection_folds > memory.reflection_after:
        yield _lower_or_raise(settings, "memory.reflection_folds", "memory.reflection_after")
    try:
        time_zone(memory.time_zone)
    except ConfigurationError as error:
        yield error.message


def _of_server(server: ServerSettings) -> Iterator[str]:
    for name in server.allowed_hosts:
        if not (_is_network(name.strip("[]")) or _HOST_NAME.fullmatch(name)):
            yield (
                f"server.allowed_hosts has {name!r}, which is not a host name: give a name or an address "
                "without scheme, port and path"
            )
    for origin in server.allowed_origins:
        if not _is_address(origin) or urlsplit(origin.rstrip("/")).path:
            yield f"server.allowed_origins has {origin!r}, which is not an origin: write it like https://hearth.example"
    for proxy in server.trusted_proxies:
        if not _is_network(proxy):
            yield (
                f"server.trusted_proxies has {proxy!r}, which is not an address: give addresses or networks such as "
                "10.0.0.0/8"
            )


def _of_search(settings: Settings) -> Iterator[str]:
    wiki, embedding = settings.wiki, settings.embedding
    if wiki.api_url:
        try:
            api_address(wiki)
        except ConfigurationError as error:
            yield error.message
    if wiki.search == "vectors" and not embedding.model:
        yield (
            'wiki.search is "vectors", but embedding.model is "": set embedding.model, or set wiki.search to "text"'
        )
    if wiki.search == "vectors" and wiki.api_url and not wiki.cache_bytes:
        yield (
            'wiki.search is "vectors", but wiki.cache_bytes is 0, and only cached pages have vectors: raise '
            'wiki.cache_bytes, or set wiki.search to "text"'
        )
    for name, section in (("embedding", embedding), ("rerank", settings.rerank)):
        if section.model and 0 < section.context < _LEAST_EMBEDDING_CONTEXT:
            yield (
                f"{name}.context is {section.context}, but a query needs at least {_LEAST_EMBEDDING_CONTEXT} tokens: "
                "raise it, or set it to 0 for the model's own"
            )


def _of_upstream(settings: Settings) -> Iterator[str]:
    upstream = settings.upstream
    given = {
        "urls": (upstream.urls, "upstream.model", upstream.model),
        "embedding_urls": (upstream.embedding_urls, "embedding.model", settings.embedding.model),
        "rerank_urls": (upstream.rerank_urls, "rerank.model", settings.rerank.model),
    }
    for name, (urls, model_name, model) in given.items():
        for url in urls:
            if not (_is_address(url) and urlsplit(url).scheme in ("http", "https")):
                yield f"upstream.{name} has {url!r}, which is no base URL: write it like http://10.0.0.2:8000"
        if urls and not model:
            yield f'upstream.{name} is set, but {model_name} is "": set it to the name of the model there'
        if len(set(urls)) < len(urls):
            yield f"upstream.{name} names a server twice: remove one of them"
    if settings.model.adapters and upstream.urls:
        yield (
            "model.adapters is set, but upstream.urls has the model: load the adapters there, and name one by "
            "upstream.model"
        )
    if upstream.model and not upstream.urls:
        yield "upstream.model is set, but upstream.urls is empty: set it to the addresses of the servers"


def _of_prompts(settings: Settings, prompts: PromptSet) -> Iterator[str]:
    style = settings.ask.style
    if style not in prompts.styles():
        yield (
            f"ask.style is {style!r}, but there is no prompt file answer_{style}.md in {settings.prompts_dir}: add it, "
            f"or choose one of {', '.join(prompts.styles())}"
        )
    shipped = load_prompts()
    for name in prompts.names():
        like = "answer_plain" if name.startswith("answer_") else name
        if like not in shipped.names():
            continue  # an additional prompt of the user
        has, wanted = set(prompts.get(name).variables), set(shipped.get(like).variables)
        if has != wanted:
            yield (
                f"the prompt file {settings.prompts_dir / name}.md has the variables {_listed(has)}, but the program "
                f"fills in {_listed(wanted)}: use these"
            )


def _of_model(settings: Settings, model: ResolvedModel) -> Iterator[str]:
    yield from _of_file(model)
    yield from _of_adapters(settings.model.adapters, model)
    context = model.context_length
    if context < MIN_CONTEXT:
        given = (
            f"model.context is {settings.model.context}"
            if model.context_given
            else f"model.name is {model.name}"
        )
        yield (
            f"{given}, but conversations need at least {MIN_CONTEXT} tokens, and there are {context}: raise "
            "model.context, or choose another model"
        )
        return
    try:
        limits = effective_limits(settings.ask, model.defaults, context)
    except ConfigurationError as error:
        yield error.message
        return
    if limits.passage >= limits.prompt:
        yield (
            f"ask.passage_tokens is {limits.passage}, but ask.prompt_tokens is {limits.prompt}, and no passage would "
            "fit: lower ask.passage_tokens or raise ask.prompt_tokens"
        )


def _of_file(model: ResolvedModel) -> Iterator[str]:
    """Why the header of the model's file does not fit its use."""
    named, pairs = f"{model.name_setting} is {model.path}", header_pairs(model.path)
    architecture = pairs.get("general.architecture")
    pooling = pairs.get(f"{architecture}.pooling_type")
    embeds = architecture in {
        row.architecture for row in Catalog.load().rows if row.kind == "embedding" and row.architecture
    }
    if not is_gguf(model.path):
        yield (
            f"{named}, which cannot be read or is not a GGUF file: fetch the model again with `hearth pull`, or choose "
            "another one"
        )
    elif model.kind == "chat" and (embeds or pairs.get(f"{architecture}.attention.causal") is False):
        yield f"{named}, an embedding model, which cannot answer: choose a chat model"
    elif model.kind == "embedding" and pooling == _RANK:
        yield f"{named}, a reranker: set rerank.model instead"
    elif (
        model.kind == "embedding" and pooling is None and not embeds and chat_template(model.path) is not None
    ):
        yield f"{named}, a chat model, which has no vectors: choose an embedding model"
    elif model.kind == "rerank" and pooling not in (None, _RANK):  # older files of rerankers name no pooling
        yield f"{named}, which is no reranker: choose another one"


def _of_adapters(paths: list[str], model: ResolvedModel) -> Iterator[str]:
    """Why a file is no adapter of the model; the model host compares the shapes of their tensors."""
    architecture = header_pairs(model.path).get("general.architecture")
    for path in map(Path, paths):
        named, pairs = f"model.adapters has {path}", header_pairs(path)
        made_for = pairs.get("general.architecture")
        if not path.is_file():
            yield f"{named}, but there is no such file: correct the path or remove it"
        elif pairs.get("general.type") != "adapter" or pairs.get("adapter.type") != "lora":
            yield f"{named}, which is no LoRA adapter in GGUF: convert it with llama.cpp's convert_lora_to_gguf.py"
        elif made_for != architecture:
            yield (
                f"{named}, an adapter for {made_for}, but {model.name} is {architecture}: remove it, or use one that "
                "was trained for this model"
            )
        elif not _ADAPTER_NAME.fullmatch(path.stem):
            yield (
                f"{named}, but requests name an adapter by its file, which may have 1 to 64 characters from "
                "A-Z a-z 0-9 . _ - before its ending: rename it"
            )
    if len(model.adapters) < len(paths):
        yield "model.adapters has two files of one name, by which requests choose: rename one of them"


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _of_tokenizer(settings: Settings) -> Iterator[str]:
    wanted = tokenizer_settings(settings)
    if wanted is not None:
        try:
            yield from _of_file(resolve_model(wanted))
        except ConfigurationError as error:
            yield f"upstream.tokenizer: {error.message}"


def _is_address(text: str) -> bool:
    """Whether this is a URL with a host that paths can be appended to."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(parts.scheme and host) and not (parts.query or parts.fragment or "@" in parts.netloc)


def _lower_or_raise(settings: Settings, low: str, high: str) -> str:
    values = flatten(settings)
    return f"{low} is {values[low]}, but {high} is {values[high]}: lower {low} or raise {high}"


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none"
