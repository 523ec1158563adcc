(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_body [(enum_assignment name: (_) @name) (property_identifier) @name] @variant)
(type_alias_declaration name: (type_identifier) @name) @type
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(function_signature name: (identifier) @name) @function
(method_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @function
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @function
(public_field_definition name: (_) @name) @field
(interface_body (property_signature name: (_) @name) @field)

(extends_clause value: [(identifier) @base (member_expression property: (_) @base)])
(implements_clause [(type_identifier) @base (generic_type name: (type_identifier) @base)])
(extends_type_clause type: [(type_identifier) @base (generic_type name: (type_identifier) @base)])

(class_body (decorator) @attribute)
(ambient_declaration) @whole
(expression_statement (internal_module)) @whole
