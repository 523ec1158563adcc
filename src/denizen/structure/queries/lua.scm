(function_declaration name: (identifier) @name) @function
(function_declaration name: [
  (dot_index_expression table: (_) @container field: (identifier) @name)
  (method_index_expression table: (_) @container method: (identifier) @name)]) @function
(assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @container field: (identifier) @name))
  (expression_list . value: (function_definition body: (_)? @body))) @function
(assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition body: (_)? @body))) @function
(field name: (identifier) @name value: (function_definition body: (_)? @body)) @function
(chunk (variable_declaration (assignment_statement (variable_list . name: (identifier) @name)) @variable))
(chunk (assignment_statement (variable_list . name: (identifier) @name)) @variable)

(function_call name: [
  (identifier) @call
  (dot_index_expression field: (identifier) @call)
  (method_index_expression method: (identifier) @call)])
(function_call name: (identifier) @_require arguments: (arguments (string) @import)
  (#any-of? @_require "require" "dofile"))

(comment) @comment
(variable_declaration) @whole
