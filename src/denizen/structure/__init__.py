"""The structure of code by tree-sitter grammars: symbols, who refers to them, and an index of a project's."""

from denizen.structure.index import Index, IndexedFile, Located, RefreshCounts, SourceFile, use_index
from denizen.structure.languages import LANGUAGES, is_of_type, language_of, named_language
from denizen.structure.outline import FUNCTIONS, TYPES, Outline, Symbol, outline
from denizen.structure.parser import Unparsable, parsed

__all__ = [
    "FUNCTIONS",
    "LANGUAGES",
    "TYPES",
    "Index",
    "IndexedFile",
    "Located",
    "Outline",
    "RefreshCounts",
    "SourceFile",
    "Symbol",
    "Unparsable",
    "is_of_type",
    "language_of",
    "named_language",
    "outline",
    "parsed",
    "use_index",
]
