"""Converts models' Markdown to Telegram's dialect MarkdownV2.

https://core.telegram.org/bots/api#markdownv2-style
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

_PARSER = MarkdownIt("commonmark").enable(["strikethrough", "table"]).disable("reference")  # a definition would vanish
_SPECIAL = re.compile(r"[_*\[\]()~`>#+\-=|{}.!\\]")
_SPECIAL_IN_CODE = re.compile(r"[`\\]")
_SPECIAL_IN_URL = re.compile(r"[)\\]")
_LANGUAGE = re.compile(r"[\w+#.-]*", re.ASCII)
_MARKS = {"em": "_", "strong": "*", "s": "~"}


def markdown_v2(text: str) -> str:
    """Convert headings, lists, quotes, code and emphasis to MarkdownV2; tables become code."""
    return "\n\n".join(_block(node, text) for node in SyntaxTreeNode(_PARSER.parse(text)).children)


def _block(node: SyntaxTreeNode, source: str, *, is_quoted: bool = False, is_nested: bool = False) -> str:
    def blocks(node: SyntaxTreeNode, *, is_quoted: bool = is_quoted) -> str:
        return "\n".join(_block(each, source, is_quoted=is_quoted, is_nested=True) for each in node.children)

    match node.type:
        case "heading":
            text = _inline(node.children, {"strong"})
            return f"*{text}*" if text else ""
        case "bullet_list" | "ordered_list":
            first = int(node.attrs.get("start", 1))
            markers = [
                f"{first + place}\\. " if node.type == "ordered_list" else "• " for place in range(len(node.children))
            ]
            items = zip(markers, map(blocks, node.children), strict=True)
            return "\n".join(marker + text.replace("\n", "\n   ") for marker, text in items)
        case "blockquote" if is_nested:  # quotes can't be nested or start within a line
            return blocks(node)
        case "blockquote":
            return "\n".join(f">{line}" for line in blocks(node, is_quoted=True).split("\n"))
        case "fence" | "code_block" | "table":
            first, last = node.map or (0, 0)
            code = "\n".join(source.split("\n")[first:last]) if node.type == "table" else node.content
            language, _, rest = node.info.strip().partition(" ")
            if not _LANGUAGE.fullmatch(language):
                language, rest = "", node.info
            code = _escaped((f"{rest}\n{code}" if rest else code).rstrip("\n"), _SPECIAL_IN_CODE)
            if is_quoted:  # quotes can't contain code blocks
                return "\n".join(f"`{line}`" if line.strip() else line for line in code.split("\n"))
            return f"```{language}\n{code}\n```"
        case "hr":
            return "———"
        case "html_block":
            return _escaped(node.content.rstrip("\n"))
        case _:
            return _inline(node.children)


def _inline(nodes: Sequence[SyntaxTreeNode], inside: AbstractSet[str] = frozenset()) -> str:
    """The text of inline nodes; `inside` are the kinds of emphasis that surround it, which don't nest."""
    text = ""
    for node in nodes:
        piece = _span(node, inside)
        # `__` would underline; an empty bold text separates the two.
        text += f"**{piece}" if text.endswith("_") and piece.startswith("_") else piece
    return text


def _span(node: SyntaxTreeNode, inside: AbstractSet[str]) -> str:
    match node.type:
        case "text" | "html_inline":
            return _escaped(node.content)
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return f"`{_escaped(node.content, _SPECIAL_IN_CODE)}`"
        case "link" | "image":
            url = str(node.attrs.get("href") or node.attrs.get("src") or "")
            return f"[{_inline(node.children, inside) or _escaped(url)}]({_escaped(url, _SPECIAL_IN_URL)})"
        case kind:
            text = _inline(node.children, inside | {kind})
            mark = _MARKS.get(kind, "") if text and kind not in inside else ""
            return f"{mark}{text}{mark}"


def _escaped(text: str, special: re.Pattern[str] = _SPECIAL) -> str:
    return special.sub(r"\\\g<0>", text)
