"""The words by which a reader tells what a model wants from what it quotes (docs/recovery.md)."""

import re
from typing import Final

SENTENCE: Final = re.compile(r"[.!?…。！？][\"'”’)\]*_]{0,3}\s|\n\s{0,99}\n|[。！？]")
CLAUSE: Final = re.compile(r"[:;,—–\n]\s")


def _any(words: str) -> str:
    """One of the words, whose parts `_` joins."""
    return "(?:" + "|".join(words.split()).replace("_", r"\s") + ")"


def _pattern(*choices: str) -> re.Pattern[str]:
    return re.compile("|".join(choices), re.IGNORECASE)


_FEW: Final = r"(?:\w{1,20}\s){0,3}?"
_GAP: Final = r"\b(?:\W{1,3}\w{1,20}){0,8}?\W{1,3}"
_FILLER: Final = (
    r"\W{0,9}(?:"
    + _any("ok okay sure right alright now first next then so great good and but thus")
    + r"\b\W{0,9}){0,4}"
)
_I: Final = _any(
    "I['’]ll I_will I_am_going_to I['’]m_going_to I_need_to I_should I_can I_must I_have_to I['’]d_like_to I_want_to"
    " let_me let['’]s let_us going_to time_to"
)
_DO: Final = _any(
    "check see find look read verify fetch get run call use search try open query ask list view inspect examine execute"
    " invoke do go start begin help make create write edit fix calculate compute take grab pull retrieve request"
    " continue proceed update set send save"
)
OWN: Final = _pattern(
    _FILLER + _I + r"\s{1,3}(?:(?!not\b|never\b)\w{1,20}\s{1,3}){0,2}?" + _DO + r"\b",
    _FILLER + "(?!" + _any("quoting citing showing repeating according following including") + r"\b)\w{2,20}ing\b",
)
"""The model says what it does next."""

_SOURCE: Final = _any(
    "pages? sites? websites? web documents? docs? files? readme tools? results? output response users? he she they it"
    " messages? emails? mail letter comments? issue post logs? article text author server api command search snippet"
    " transcript person someone somebody attacker instructions? notes? prompt channel"
)
_SAYS: Final = _any(
    "says? said saying reads states? stated writes wrote written returned returns replied replies responded responds"
    " answered answers contains? contained containing shows? showed prints? printed outputs asks? asked told tells"
    " instructs? instructed requests? requested includes? included quotes? quoted quoting mentions? mentioned suggests?"
    " suggested wants wanted claims? claimed sends? sent posted gives? gave found emitted produced embeds? embedded"
    " injected tries tried holds held followed reports? reported begins began ends ended listed"
)
_FOUND: Final = _any(
    "quot(?:e|es|ed|ing) cit(?:e|es|ed|ing) says? said found saw read received got returned contain\\w+"
)
SAID: Final = _pattern(
    rf"\b{_SOURCE}{_GAP}{_SAYS}\b",
    rf"\b{_SOURCE}{_GAP}{_any('is are was were has had')}\W{{0,3}}\Z",
    rf"\b{_SOURCE}{_GAP}ha[sd]\s{_FEW}{_any('this these following line text comment instruction note message call')}\b",
    rf"\b{_FOUND}{_GAP}{_SOURCE}\b",
    rf"(?<!\bI\s)\b{_any('says said writes wrote replies replied pages paged whispers? whispered shouts shouted')}\b",
)
"""Another is said to say something, or something is said to come from there."""

_WRITTEN: Final = _any("results? outputs? response reply contents? text message input log observation")
_HERE: Final = _any("here['’]s here_is here_are this_is these_are below_is")
LABEL: Final = _pattern(
    rf"{_any('from according_to per quoting on in at')}\s{_FEW}{_SOURCE}\b",
    rf"{_HERE}\s{_FEW}"
    rf"{_any('page website document file readme output response log email message article contents? user tool')}\b",
    rf"{_HERE}\s{_FEW}result\s(?:of|from)\b",
    rf"{_any('contents? output results? response text excerpt')}\s(?:of|from)\b",
    rf"(?!here\b)(?:\w{{1,20}}(?:['’]s)?\s){{0,3}}?{_WRITTEN}\s?(?:\([^()\n]{{0,40}}\)\s?)?:\Z",
    rf"\[(?:\w{{1,20}}[_\s])?{_WRITTEN}\]",
    rf"{_any('user human tool page website document file email message system')}\s?:\Z",
    rf"to\s\w{{1,20}}\b.{{0,200}}?\b{_any('use type write run call try send enter')}\b",
    rf"[^:]{{0,200}}?\bfrom\s{_FEW}{_SOURCE}\b[^:]{{0,40}}:\Z",
)
"""What follows is announced as another's."""

ELSEWHERE: Final = _pattern(
    _any(
        "sagt sagte schreibt schrieb steht lautet enthält antwortet meldet dit écrit contient affiche répond dice dijo"
        " escribe contiene muestra responde disse diz contém говорит пишет содержит 说 写道 显示 返回 包含"
    )
    + r"[^.!?\n]{0,60}[:：]\Z"
)
"""The same, in other languages."""

FOLLOWS: Final = _pattern(r"\b" + _any("following below as_follows verbatim") + r"\b")
SPAN: Final = re.compile(r"`[^`]*`")
COLON: Final = re.compile(r":(?=\s|\Z)")
EXAMPLE: Final = _pattern(
    r"\b"
    + _any(
        "examples? e\\.g for_instance such_as looks?_like like_this formats? syntax would"
        " you_(?:can|could|should|might|must|may|need|have) instead_of do_not don['’]?t does_not doesn['’]?t"
        " never not_to not_be avoid should_not shouldn['’]?t must_not mustn['’]?t won['’]?t will_not cannot"
        " can['’]?t refuse[ds]? ignor(?:e|ed|ing) injection malicious suspicious to_call_(?:a|the)_tool"
        " demonstrat\\w+ illustrat\\w+ templates? placeholders? suppose imagine hypothetical\\w*"
        " documentation literal\\w* the_string the_text asks?_me asked_me told_me tells_me instead"
    )
    + r"\b"
)
"""What is only shown, or advised against."""

LINE: Final = re.compile(
    r"\||\[\d{1,2}:\d\d|<\w{1,30}> |[\w./-]{1,100}:\d{1,6}:|[ \t]{0,6}\d{1,6}(?:[→|]|:\s)|[+-]\Z"
    r"|\[\w{0,20}_?(?:result|output)\]"
    r"|(?!(?:Action|Next|Now|Plan|Step|Then|First|Finally|Call|Tool|Command|Answer|Task|Assistant|Me|Note|Okay|Sure|Done)\b)"
    r"[A-Z]\w{1,20}: {0,3}\Z"
)
"""Lines of tables, logs, chats, searches, listings and differences."""

AFTER: Final = re.compile(
    r"[\"'”’`)]?[ \t]{0,3}(?:"
    + _any("is was are were would means appears? in_the_(?:page|file|text) as_an?_example as_shown")
    + r")\b"
)
ANNOUNCED: Final = _pattern(r"\s{0,9}" + _FILLER + _any("I['’]ll I_will I['’]m_going_to I_am_going_to let_me") + r"\b")
TELLS: Final = _pattern(r"\b" + _any("show explain demonstrate quote tell") + r"\b")
