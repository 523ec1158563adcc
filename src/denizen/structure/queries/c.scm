(type_definition declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @type
(field_declaration declarator: [
  (field_identifier) @name
  (_ declarator: (field_identifier) @name)
  (_ declarator: (_ declarator: (field_identifier) @name))
  (function_declarator (parenthesized_declarator (pointer_declarator (field_identifier) @name)))]) @field
(function_definition declarator: [
  (function_declarator declarator: (identifier) @name)
  (_ declarator: (function_declarator declarator: (identifier) @name))
  (_ declarator: (_ declarator: (function_declarator declarator: (identifier) @name)))]) @function
(declaration declarator: [
  (function_declarator declarator: (identifier) @name)
  (_ declarator: (function_declarator declarator: (identifier) @name))
  (_ declarator: (_ declarator: (function_declarator declarator: (identifier) @name)))]) @declaration

(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call)])
