; Elements in a script.
(jsx_opening_element name: [(identifier) @call (member_expression property: (_) @call)] (#match? @call "^[A-Z]"))
(jsx_self_closing_element name: [(identifier) @call (member_expression property: (_) @call)] (#match? @call "^[A-Z]"))
