"""Progress of a question as text for people."""

from __future__ import annotations

from typing import Any

_BAR = 20  # characters of a full progress bar


def stage_text(name: str, detail: dict[str, Any]) -> str:
    """Describe a stage in one line. Unknown stages and details are shown as they are."""
    return " ".join(_text(name, detail).split())


def _text(name: str, detail: dict[str, Any]) -> str:
    match name, detail:
        case "queued", {"waiting": waiting}:
            return f"waiting: {waiting} before this one"
        case "queued", {"position": int(position)}:
            seconds = detail.get("wait_seconds")
            return f"waiting: place {position}" + (f", about {seconds:.0f} s" if seconds is not None else "")
        case "queued", _:
            return "asking"
        case "loading", {"fraction": fraction}:
            return f"loading the model: {fraction:.0%}"
        case "terms", {"terms": terms}:
            return f"search terms: {', '.join(terms) or 'those of the question'}"
        case "terms", _:
            return "looking for search terms"
        case "search", {"term": term, "pages": pages}:
            return f"searching `{term}`: {', '.join(pages) or 'nothing found'}"
        case "fetch", {"title": title}:
            return f"reading {title}"
        case "compact", {"title": title, "words": words}:
            return f"summarizing {title} in {words} words"
        case "rerank", _:
            return "ranking the passages again"
        case "answer", {"pages": pages}:
            seconds = detail.get("seconds") or 0
            about = f", about {seconds:.0f} s" if seconds >= 1 else ""
            note = f": {detail['note']}" if "note" in detail else ""
            return f"answering from {', '.join(pages)}{about}{note}"
        case "reading", {"done": int(done), "total": int(total)} if total > 0:
            left = detail.get("seconds_left")
            bar = ("#" * (_BAR * done // total)).ljust(_BAR, "-")
            about = f", about {left:.0f} s left" if left is not None else ""
            return f"[{bar}] {done:,} of {total:,} tokens read{about}"
        case "answer", {"note": note}:
            return str(note)
        case "check", _:
            return "checking the citations"
    return name + "".join(f" {key}={value}" for key, value in detail.items())
