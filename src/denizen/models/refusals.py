"""How to rewrite a request that was refused: other field names, no schema, no files, no thoughts."""

import re
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from denizen.config.pattern import pattern
from denizen.errors import ModelError
from denizen.messages import AssistantPart, Opaque, Thinking
from denizen.models.providers import COMPLETION_LIMIT, Provider

_WANTS_NEW_LIMIT: Final = pattern(rf"'max_tokens'.*\buse '?{COMPLETION_LIMIT}", re.IGNORECASE)
_NO_SCHEMA: Final = pattern(
    r"text\.format|response[_ ]?format|json[_ ]?(schema|object|mode)|structured output", re.IGNORECASE
)
_BAD_SCHEMA: Final = pattern(
    r"invalid.{0,20} schema|schema.{0,80}(\binvalid|too (many|complex|large|deep)|nesting)"
    r"|circular|recursi|too many optional|\bgrammar\b|request contains an invalid argument",
    re.IGNORECASE | re.DOTALL,
)
"""Refusals of a schema by OpenAI, Anthropic, Google (which may name nothing) and local servers."""
_NO_FILES: Final = pattern(r"input_file|'file'|\bfiles?\b.*\b(not|un)[ -]?(support|allow|accept)", re.IGNORECASE)
_BAD_FILE: Final = pattern(
    r"\bpdf\b.{0,40}(not valid|invalid|password|encrypted|corrupt)"
    r"|could not process pdf|maximum of \d+ pdf pages|document has no pages",
    re.IGNORECASE,
)
"""Refusals by Anthropic and Google of a document that they can't read, or of too many pages."""
_UNVERIFIABLE: Final = pattern(
    r"invalid\W+(signature|data)\W+in\W+(redacted_)?thinking"
    r"|encrypted content .{0,400}could not be (verified|decrypted)"
    r"|(corrupted|invalid) thought[_ ]?signature|thought[_ ]?signature is not valid",
    re.IGNORECASE,
)
"""Refusals of thoughts by Anthropic, OpenAI and Google; a proxy may use any of these phrases."""


def adapted(provider: Provider, error: ModelError) -> Provider:
    """The provider as its refusal shows it: the limit has a new name, or it takes no schema, no JSON, no files."""
    if provider.max_tokens != COMPLETION_LIMIT and _WANTS_NEW_LIMIT.search(error.message):
        return replace(provider, max_tokens=COMPLETION_LIMIT)
    if error.status not in {400, 415, 422}:
        return provider
    if provider.json_schema != "never" and _NO_SCHEMA.search(error.message):
        return replace(provider, json_schema="never" if provider.json_schema == "object" else "object")
    return (
        replace(provider, documents=()) if _NO_FILES.search(error.message) else with_documents_as_text(provider, error)
    )


def with_documents_as_text(provider: Provider, error: ModelError) -> Provider:
    """The provider as one that takes no files, where it can't read a document: it stays in the conversation."""
    refused = error.status == HTTPStatus.BAD_REQUEST and _BAD_FILE.search(error.message)
    return replace(provider, documents=()) if refused else provider


def refuses_schema(error: ModelError) -> bool:
    """Whether the schema of the answer is refused, where the request held one."""
    return error.status in {HTTPStatus.BAD_REQUEST, 422} and bool(_BAD_SCHEMA.search(error.message))


def refuses_thoughts(error: ModelError) -> bool:
    """Whether thoughts in the request are refused: another account's, or those after a message that was changed.

    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
    """
    return error.status == HTTPStatus.BAD_REQUEST and bool(_UNVERIFIABLE.search(error.message))


def without_signature(part: AssistantPart) -> AssistantPart | None:
    """The part without the fields that only its provider can verify; None if nothing is left."""
    match part:
        case Thinking(_, signature) if signature:
            return None
        case Opaque(author, {"thoughtSignature": _, **rest}) if rest.keys() - {"text", "thought"}:
            return Opaque(author, rest, part.untrusted)
        case Opaque(
            _,
            {"type": "redacted_thinking"}
            | {"encrypted_content": str()}
            | {"thoughtSignature": _}
            | {"reasoning_details": _}
            | {"extra_content": _},
        ):
            return None
    return part
