(class_declaration name: (identifier) @name) @class
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @function
(field_definition property: (_) @name) @field
(assignment_expression
  left: (member_expression
    object: (member_expression object: (identifier) @container property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]
  (#eq? @_prototype "prototype")) @function

(class_heritage [(identifier) @base (member_expression property: (_) @base)])

(decorator) @attribute
