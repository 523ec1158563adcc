"""The offline model finds where something is, and where it is defined."""

from pathlib import Path

import pytest
from tests.models.offline.workshop import Ask

from denizen.messages import ToolResult


@pytest.mark.parametrize(
    "question",
    ["Where can I find checkout?", "where does checkout live", "locate checkout", "in which file is checkout?"],
)
async def test_finds_where_something_is(ask: Ask, question: str) -> None:
    assert "web/app.ts:5: export function checkout" in (await ask(question)).reply


async def test_method_without_a_keyword_is_found_by_its_name_after_its_class(ask: Ask, workshop: Path) -> None:
    (workshop / "web/till.ts").write_text("class Till {\n  async weigh(a: number): number { return a }\n}\n")
    assert "web/till.ts:2: async weigh(a: number)" in (await ask("where is Till.weigh")).reply
    assert (await ask("where is Till.nothing")).reply.startswith("I find `nothing` nowhere")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "class Till:\n    def weigh(self): ...\n\n\nclass Scale:\n    def weigh(self): ...\n"),
        ("a.js", "Till.prototype.weigh = function () {}\nScale.prototype.weigh = (x) => 1\n"),
        ("a.go", "func (t *Till) weigh() int {\n}\nfunc (s *Scale) weigh() int {\n}\n"),
        ("a.rs", "impl Till {\n    fn weigh() {}\n}\nimpl Scale {\n    fn weigh() {}\n}\n"),
        ("A.java", "class Till {\n  int weigh() {}\n}\nclass Scale {\n  int weigh() {}\n}\n"),
    ],
)
async def test_says_that_it_cannot_tell_whose_a_method_is(ask: Ask, workshop: Path, path: str, text: str) -> None:
    (workshop / path).write_text(text)
    (workshop / "other.py").write_text("def weigh(): ...\n")
    reply = (await ask("Where is Scale.weigh defined?")).reply
    assert reply.startswith("`weigh` is defined in 2 places in files that name `Scale`; whose it is I can't tell:")
    assert "other.py" not in reply


@pytest.mark.parametrize("definition", ["res.sendFile = function sendFile(path) {", "  sendFile: (path) => 1,"])
async def test_function_that_becomes_a_property_is_defined(ask: Ask, workshop: Path, definition: str) -> None:
    (workshop / "a.js").write_text(f"res.sendFile(1)\n{definition}\n")
    assert (await ask("where is sendFile defined?")).reply.startswith(
        "`sendFile` is defined in 1 place:\n\n```\na.js:2"
    )


async def test_calls_with_a_callback_are_not_definitions(ask: Ask, workshop: Path) -> None:
    (workshop / "a.js").write_text('weigh("x", function () {});\n  weigh(x, function () {\n')
    assert (await ask("where is weigh defined?")).reply.startswith("I find no line that defines `weigh`")
    assert (await ask("who calls weigh?")).reply.startswith("`weigh` is called in 2 places:")


async def test_arguments_are_not_definitions(ask: Ask, workshop: Path) -> None:
    (workshop / "a.py").write_text("call(\n    weigh=1,\n)\nreturn weigh(2)\n")
    assert (await ask("where is weigh defined?")).reply.startswith("I find no line that defines `weigh`")


@pytest.mark.parametrize(
    "question",
    ["any TODOs?", "find all todos", "show me the TODOs in src", "are there todos here", "Where are the TODOs?"],
)
async def test_finds_what_is_to_be_done(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "src/later.py").write_text("# TODO: weigh\n")
    assert "src/later.py:1: # TODO: weigh" in (await ask(question)).reply


async def test_what_only_holds_the_word_is_not_to_be_done(ask: Ask, workshop: Path) -> None:
    (workshop / "src/conf.py").write_text('extensions = ["sphinx.ext.autodoc"]\n')
    assert "autodoc" not in (await ask("Are there any TODOs?")).reply
    (workshop / "src/later.py").write_text("# todo: weigh\n")
    assert (await ask("Are there any TODOs?")).reply.startswith("`TODO` is in 1 place, with other capitals:")


async def test_the_class_is_what_is_defined_and_not_prose_about_it(ask: Ask, workshop: Path) -> None:
    (workshop / "src/app.py").write_text('class Flask(App):\n    """The object."""\n')
    (workshop / "src/help.py").write_text('def find():\n    """Give nothing to\n    let Flask autodetect it."""\n')
    (workshop / "guide.md").write_text("class Flask\n")
    reply = (await ask("Where is Flask defined?")).reply
    assert reply.startswith("`Flask` is defined in 1 place:")
    assert "src/app.py:1: class Flask(App)" in reply


async def test_callers_are_neither_definitions_nor_comments(ask: Ask, workshop: Path) -> None:
    (workshop / "src/a.py").write_text("def weigh(x):\n    return x\n\n\n# weigh(1) is one\nweigh(2)  # not weigh(3)\n")
    (workshop / "src/a.ts").write_text("function weigh(x) {\n  // weigh(y)\n  return scale.weigh(x)\n}\n")
    (workshop / "notes.md").write_text("Call weigh(x).\n")
    reply = (await ask("Who calls weigh?")).reply
    assert reply.partition("```\n")[2].partition("\n```")[0].splitlines() == [
        "src/a.py:6: weigh(2)  # not weigh(3)",
        "src/a.ts:3: return scale.weigh(x)",
    ]


@pytest.mark.parametrize(
    "question",
    [
        'find the text "LAMP_CENTS"',
        "does the code mention LAMP_CENTS?",
        "where does it say LAMP_CENTS",
        "occurrences of LAMP_CENTS",
        "search for LAMP_CENTS",
        "grep LAMP_CENTS",
        "grep for 'LAMP_CENTS'",
        "where is LAMP_CENTS used?",
        "who uses `LAMP_CENTS`?",
    ],
)
async def test_finds_a_text(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("`LAMP_CENTS` is in 4 places in 2 files:")
    assert "src/shop/cart.py:5: LIMIT: int = LAMP_CENTS * 100" in reply


async def test_finds_a_text_in_a_place_of_several_words_and_signs(ask: Ask) -> None:
    assert (await ask("find the word lamp in src/")).reply.startswith("`lamp` is in 3 places in 2 files in `src/`")
    assert "(basket: Basket)` is in 2 places in `web/`" in (await ask('search for "(basket: Basket)" in web/')).reply
    assert (await ask("search for 'sum(prices'")).reply.startswith("`sum(prices` is in 1 place:")


async def test_finds_a_text_in_other_capitals_and_says_so(ask: Ask) -> None:
    assert (await ask("search for WORKSHOP")).reply.startswith(
        "`WORKSHOP` is in 2 places in 2 files, with other capitals:"
    )


async def test_method_that_is_used_through_a_variable_is_not_called_unused(ask: Ask) -> None:
    reply = (await ask("where is PriceList.price_of used?")).reply
    assert reply.startswith("`PriceList.price_of` is nowhere in the files that I can search. `price_of` is in 3 places")


async def test_says_that_a_text_is_nowhere(ask: Ask) -> None:
    assert (await ask('find the text "zeppelin"')).reply == "`zeppelin` is nowhere in the files that I can search."


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("where is PriceList defined?", "src/shop/prices.py:6: class PriceList:"),
        ("where's price_of defined", "src/shop/prices.py:9: def price_of(self, article: str) -> int:"),
        ("Where is `PriceList.price_of` implemented?", "src/shop/prices.py:9: def price_of"),
        ("find the definition of refresh", "src/shop/prices.py:13: async def refresh"),
        ("which file defines LAMP_CENTS?", "src/shop/prices.py:3: LAMP_CENTS = 1250"),
        ("where is the constant LIMIT defined", "src/shop/cart.py:5: LIMIT: int = LAMP_CENTS * 100"),
        ("where is renderBasket defined", "web/app.ts:3: export const renderBasket"),
        ("where is the interface Basket?", "web/app.ts:1: export interface Basket"),
        ("where is checkout()?", "web/app.ts:5: export function checkout"),
        ("where is Weigh defined?", "tools/scale.go:7: func (s *Scale) Weigh() int"),
        ("where is ring_bell declared?", "tools/bell.c:4: static int ring_bell(int times)"),
        ("where is LOUD defined", "tools/bell.c:2: #define LOUD 3"),
        ("where is the trait Press", "tools/press.rs:1: pub trait Press"),
        ("where is squeeze defined?", "tools/press.rs:1: pub trait Press { fn squeeze"),
        ("where is ship defined?", "Makefile:1: ship: build"),
        ("Where's the PriceList class?", "src/shop/prices.py:6: class PriceList:"),
        ("renderBasket definition", "web/app.ts:3: export const renderBasket"),
    ],
)
async def test_finds_definitions_in_many_languages(ask: Ask, question: str, place: str) -> None:
    reply = (await ask(question)).reply
    assert " is defined in " in reply.partition("\n")[0]
    assert place in reply


async def test_one_search_finds_a_definition(ask: Ask) -> None:
    result = await ask("where is LIMIT defined?")
    assert [message.name for message in result.messages if isinstance(message, ToolResult)] == ["grep"]


async def test_finds_the_definition_of_a_name_that_is_on_too_many_lines_to_show(ask: Ask, workshop: Path) -> None:
    (workshop / "a.py").write_text("lamp += 1\n" * 5_000)
    (workshop / "z.py").write_text("def lamp(): ...\n")
    assert "z.py:1: def lamp(): ..." in (await ask("where is lamp defined?")).reply


async def test_parts_of_longer_names_are_not_the_name(ask: Ask, workshop: Path) -> None:
    (workshop / "a.py").write_text("class PriceListing: ...\nclass MyPriceList: ...\n")
    assert "in 1 place:" in (await ask("where is PriceList defined?")).reply


async def test_says_where_a_name_is_mentioned_that_nothing_defines(ask: Ask) -> None:
    reply = (await ask("where is printf defined?")).reply
    assert reply.startswith("I find no line that defines `printf`, but it is mentioned in 1 place:")
    assert (await ask("where is zeppelin defined?")).reply.startswith("I find `zeppelin` nowhere")
