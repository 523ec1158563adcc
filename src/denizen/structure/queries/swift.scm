(class_declaration declaration_kind: "class" name: (type_identifier) @name) @class
(class_declaration declaration_kind: "actor" name: (type_identifier) @name) @class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration declaration_kind: "extension" name: (_) @name) @extension
(protocol_declaration name: (type_identifier) @name) @protocol
(enum_entry name: (simple_identifier) @name) @variant
(typealias_declaration . name: (type_identifier) @name) @type
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @function
(init_declaration name: "init" @name) @function
(deinit_declaration "deinit" @name) @function
(subscript_declaration "subscript" @name) @function
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field)
(enum_class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field)

(call_expression . [
  (simple_identifier) @call
  (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call))]
  (call_suffix [(value_arguments "(") (lambda_literal)]))
(attribute (user_type (type_identifier) @call))
(inheritance_specifier inherits_from: (user_type (type_identifier) @base))
(import_declaration (identifier) @import)

[(comment) (multiline_comment)] @comment
