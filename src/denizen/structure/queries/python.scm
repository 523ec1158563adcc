; What defines something: a capture named after its kind, around the name.
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(type_alias_statement left: (type . (_) @name)) @type
(module (expression_statement (assignment left: (identifier) @name) @variable))
(module [(if_statement (block (expression_statement (assignment left: (identifier) @name) @variable)))
         (try_statement (block (expression_statement (assignment left: (identifier) @name) @variable)))])
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @field)))

; What refers to something.
(call function: [(identifier) @call (attribute attribute: (identifier) @call)])
(decorator [(identifier) @call (attribute attribute: (identifier) @call)])
(class_definition superclasses: (argument_list
  [(identifier) @base (attribute attribute: (identifier) @base) (subscript value: (identifier) @base)]))
(import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
(import_from_statement module_name: (_) @import)
(import_from_statement name: [(dotted_name) @imported (aliased_import name: (dotted_name) @imported)])

; What belongs to a definition.
(comment) @comment
(decorated_definition) @whole
(expression_statement (assignment)) @whole
