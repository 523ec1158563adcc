"""Which language a file is written in."""

import pytest

from denizen.structure import LANGUAGES, is_of_type, language_of, named_language


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("src/main.py", b"", "python"),
        ("stubs/main.PYI", b"", "python"),
        ("lib/App.jsx", b"", "javascript"),
        ("lib/App.tsx", b"", "tsx"),
        ("lib/app.mts", b"", "typescript"),
        ("Rakefile", b"", "ruby"),
        ("build.gradle.kts", b"", "kotlin"),
        ("a.h", b"int add(int a, int b);\n", "c"),
        ("a.h", b"#pragma once\nnamespace parts {\n}\n", "cpp"),
        ("a.h", b"class Store {\npublic:\n  int size;\n};\n", "cpp"),
        ("run", b"#!/bin/sh\necho hello\n", "bash"),
        ("run", b"#!/usr/bin/env python3.11\n", "python"),
        ("run", b"#!/usr/bin/env -S node --no-warnings\n", "javascript"),
        ("run", b"#!/usr/bin/python3 -u\r\n", "python"),
        ("run", b"#!/usr/bin/perl\n", ""),
        ("run", b"echo hello\n", ""),
        ("README.md", b"#!/bin/sh\n", ""),
        ("notes.txt", b"", ""),
        ("", b"", ""),
    ],
)
def test_a_file_shows_it_by_its_name_or_its_first_line(path: str, head: bytes, language: str) -> None:
    assert language_of(path, head) == language


@pytest.mark.parametrize(
    ("word", "language"),
    [("Python", "python"), ("py", "python"), ("c++", "cpp"), ("C#", "csharp"), ("ts", "typescript"), ("shell", "bash")],
)
def test_people_call_languages_by_several_names(word: str, language: str) -> None:
    assert named_language(word) == language


def test_every_language_goes_by_its_own_name() -> None:
    assert [named_language(name) for name in LANGUAGES] == [*LANGUAGES]


@pytest.mark.parametrize(
    ("path", "word", "fits"),
    [
        ("a.tsx", "typescript", True),
        ("a.ts", "tsx", False),
        ("a.h", "c++", True),
        ("a.c", "c++", False),
        ("a.md", "md", True),
        ("a.md", ".md", True),
        ("a.py", "md", False),
        ("amd", "md", False),
    ],
)
def test_a_word_that_is_no_language_is_taken_as_a_suffix(path: str, word: str, fits: bool) -> None:
    assert is_of_type(path, word) is fits
