; What JavaScript and TypeScript have in common.
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (_) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])
  @function
(variable_declarator name: (identifier) @name value: (class)) @class
(program (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name) @constant))
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(export_statement (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name) @constant))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression
  left: (member_expression
    object: (member_expression object: (identifier) @container property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]
  (#eq? @_prototype "prototype")) @function
(assignment_expression
  left: (member_expression object: (identifier) @container property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]
  (#not-match? @container "^(exports|module|window|global|globalThis)$")) @function
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]) @function

(call_expression function: [(identifier) @call (member_expression property: (_) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (_) @call)])
(decorator (identifier) @call)
(import_statement source: (string) @import)
(import_specifier name: (identifier) @imported)
(import_clause (identifier) @imported)
(export_statement source: (string) @import)
(call_expression function: (identifier) @_require arguments: (arguments . (string) @import) (#eq? @_require "require"))
(call_expression function: (import) arguments: (arguments . (string) @import))

(comment) @comment
(export_statement) @whole
(lexical_declaration) @whole
(variable_declaration) @whole
(expression_statement (assignment_expression)) @whole
