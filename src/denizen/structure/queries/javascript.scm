(class_declaration name: (identifier) @name) @class
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @function
(field_definition property: (_) @name) @field
(class_heritage [(identifier) @base (member_expression property: (_) @base)])

(decorator) @attribute
