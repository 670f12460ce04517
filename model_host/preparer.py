"""From an accepted request to a sequence: template, tokens, limits, grammar, sampler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from model_host import protocol
from model_host.batching.request import SequenceState, bad_grammar
from model_host.batching.slots import Marks
from model_host.engine.engine import Engine
from model_host.grammar.gbnf.program import Program, compile_grammar
from model_host.grammar.gbnf.syntax import GrammarError
from model_host.grammar.schema.converter import schema_to_grammar
from model_host.prompts.renderer import ChatTemplateError
from model_host.prompts.templates import BuiltPrompt, PromptBuilder
from model_host.replies.markers import CHANNEL_MARKERS, CHANNEL_THOUGHTS, THOUGHTS, Markers, StopMatcher
from model_host.replies.reply import Reply
from model_host.replies.reply_parser import ReplyParser
from model_host.replies.tool_grammar import tool_grammar
from model_host.wire.output import Ticket

_NO_VECTORS = "this host generates text; vectors come from a host that was started with --embedding"


class Preparer:
    """Prepares the requests of a host that generates text."""

    def __init__(self, engine: Engine, prompts: PromptBuilder) -> None:
        self._engine = engine
        self._vocabulary = engine.vocabulary
        self._prompts = prompts
        self._limit = engine.sequence_limit
        pairs = [*THOUGHTS, *prompts.thoughts]
        spellings = [*chain.from_iterable(pairs), *CHANNEL_MARKERS, *prompts.form.markers]
        self._markers = Markers(spellings, engine.vocabulary.control)
        self._thought_ends = {
            end: engine.vocabulary.tokenize(end, special=True) for _, end in (*pairs, CHANNEL_THOUGHTS)
        }

    def prepare(self, ticket: Ticket) -> SequenceState | protocol.Event:
        """Return the sequence for a generation, else the event that ends the request."""
        request = ticket.request
        try:
            if isinstance(request, protocol.Count):
                return self._count(request)
            if isinstance(request, protocol.Detokenize):
                return self._detokenize(request)
            if isinstance(request, protocol.Embed):
                return protocol.Failed(request.id, "wrong_host", _NO_VECTORS)
            return self._sequence(request, ticket.arrived)
        except ChatTemplateError as failure:
            return protocol.Failed(request.id, "bad_template", str(failure)[:1000])
        except GrammarError as failure:
            assert isinstance(request, protocol.Generate)
            return bad_grammar(request.id, failure, _shaper(request))

    def _count(self, request: protocol.Count) -> protocol.Counted:
        vocabulary = self._engine.vocabulary
        if request.messages is not None:
            lists = [self._prompts.build(request.messages, request.tools).tokens]
        else:
            read = vocabulary.tokenize_whole if request.ends else partial(vocabulary.tokenize, special=False)
            lists = [read(text) for text in request.texts or []]
        counts = [len(tokens) for tokens in lists]
        return protocol.Counted(request.id, counts, lists if request.return_tokens else None)

    def _detokenize(self, request: protocol.Detokenize) -> protocol.Detokenized | protocol.Failed:
        largest, last = max(request.tokens, default=0), self._vocabulary.size - 1
        if largest > last:
            problem = f"`tokens` has {largest}; the vocabulary's last token is {last}"
            return protocol.Failed(request.id, "bad_request", problem)
        pieces = [self._vocabulary.piece(token) for token in request.tokens]
        text = b"".join(pieces).decode("utf-8", "replace")
        return protocol.Detokenized(request.id, text, [*map(list, pieces)] if request.return_pieces else None)

    def _sequence(self, request: protocol.Generate, arrived: float) -> SequenceState | protocol.Failed:
        largest, last = max(_named_tokens(request), default=0), self._vocabulary.size - 1
        if largest > last:
            field = "logit_bias" if largest in request.sampling.logit_bias else "prompt"
            problem = f"`{field}` has the token {largest}; the vocabulary's last token is {last}"
            return protocol.Failed(request.id, "bad_request", problem)
        if request.suffix is not None and self._vocabulary.fill_in is None:
            problem = (
                "`suffix`: this model has no fill-in tokens; use one that was trained with them, for code"
            )
            return protocol.Failed(request.id, "bad_request", problem, details={"field": "suffix"})
        if request.adapter and request.adapter not in self._engine.adapters:
            problem = f"`adapter` is {request.adapter!r}, which was not loaded"
            return protocol.Failed(request.id, "bad_request", problem, details={"field": "adapter"})
        tokens, shared, system, turn, thought = self._prompt(request)
        if len(tokens) >= self._limit:
            return protocol.Failed(
                request.id,
                "prompt_too_long",
                # Clients that shorten a chat by themselves look for "prompt is too long" or "maximum context length".
                f"the prompt is too long: this model's maximum context length is {self._limit} tokens with at least "
                f"one of the answer, and the prompt has {len(tokens)}",
                details={"tokens": len(tokens), "limit": self._limit},
            )
        if not tokens:
            return protocol.Failed(request.id, "bad_request", "the prompt is empty")
        grammar, lazy = self._grammar(request)
        after_thought = bool(thought) and not lazy
        return SequenceState(
            id=request.id,
            lane=request.lane,
            owner=request.owner,
            tokens=tokens,
            shared=shared,
            max_tokens=self._limit if request.max_tokens is None else request.max_tokens,
            sampler=self._engine.sampler(
                request.sampling,
                grammar=grammar,
                lazy=lazy or after_thought,
                ignore_eos=request.ignore_eos,
                closes=request.json_schema is not None,
            ),
            reply=Reply(
                StopMatcher(request.stop),
                self._parser(request, thought),
                after_thought=after_thought,
                thought_limit=request.thought_tokens,
                thought_ends=self._thought_ends,
            ),
            arrived=arrived,
            adapter=request.adapter,
            marks=Marks(system, turn),
            logprobs=request.logprobs,
            scored=shared if request.prompt_logprobs else None,
            shaper=_shaper(request),
        )

    def _grammar(self, request: protocol.Generate) -> tuple[Program | None, bool]:
        """The grammar of the output, and whether it is lazy: applied only from the first tool call on."""
        if request.json_schema is not None:
            return schema_to_grammar(request.json_schema), False
        form, tools = self._prompts.form, _callable(request)
        if not tools:
            if request.grammar is None:
                return None, False
            return compile_grammar(request.grammar, self._vocabulary.grammar_token), False
        lazy = request.tool_choice == "auto"
        if lazy and not form.open:
            return None, False  # no marker shows where a call begins
        parallel = request.parallel_tool_calls and not request.tool_choice.startswith("function:")
        return tool_grammar(form, self._markers, tools, parallel=parallel, opened=lazy), lazy

    def _parser(self, request: protocol.Generate, thought: str) -> ReplyParser | None:
        if request.messages is None:
            return None
        tools = {tool.name: tool.parameters for tool in _callable(request)}
        return ReplyParser(
            self._markers,
            self._prompts.form,
            tools,
            parallel=request.parallel_tool_calls,
            leading=() if request.continue_final else self._prompts.thoughts,
            opened=thought,
        )

    def _prompt(self, request: protocol.Generate) -> BuiltPrompt:
        if request.messages is not None:
            return self._prompts.build(
                request.messages,
                [] if request.tool_choice == "none" else request.tools,
                continued=request.continue_final,
                variables=request.template_variables,
            )
        vocabulary = self._vocabulary
        tokens = self._plain(request.prompt or "")
        bos = vocabulary.bos_id
        begin = [] if bos is None or tokens[:1] == [bos] else [bos]
        if request.suffix is not None:
            assert vocabulary.fill_in is not None
            before, after, between = vocabulary.fill_in
            tokens = [before, *tokens, after, *self._plain(request.suffix), between]
        return BuiltPrompt(begin + tokens, len(begin))

    def _plain(self, prompt: str | Sequence[str | int]) -> list[int]:
        tokens: list[int] = []
        for piece in [prompt] if isinstance(prompt, str) else prompt:
            tokens += [piece] if isinstance(piece, int) else self._vocabulary.tokenize(piece, special=False)
        return tokens


def _named_tokens(request: protocol.Generate) -> list[int]:
    pieces = [] if request.prompt is None or isinstance(request.prompt, str) else request.prompt
    return [*request.sampling.logit_bias, *(piece for piece in pieces if isinstance(piece, int))]


def _callable(request: protocol.Generate) -> list[protocol.Tool]:
    """The tools that the reply may call."""
    kind, _, name = request.tool_choice.partition(":")
    return [tool for tool in request.tools if kind != "none" and name in ("", tool.name)]


def _shaper(request: protocol.Generate) -> str:
    """The field that constrains the output."""
    if request.json_schema is not None:
        return "json_schema"
    return "grammar" if request.grammar is not None else "tools"
