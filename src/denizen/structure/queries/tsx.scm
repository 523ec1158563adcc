; Added to typescript.scm for files with elements in them.
(jsx_opening_element name: [(identifier) @call (member_expression property: (_) @call)] (#match? @call "^[A-Z]"))
(jsx_self_closing_element name: [(identifier) @call (member_expression property: (_) @call)] (#match? @call "^[A-Z]"))
