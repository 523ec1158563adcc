(namespace_declaration name: (_) @name) @module
(class_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_member_declaration name: (identifier) @name) @variant
(delegate_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @function
(constructor_declaration name: (identifier) @name) @function
(destructor_declaration name: (identifier) @name) @function
(local_function_statement name: (identifier) @name) @function
(property_declaration name: (identifier) @name) @field
(event_declaration name: (identifier) @name) @field
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name) @field))
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name) @field))

(invocation_expression function: [
  (identifier) @call
  (generic_name (identifier) @call)
  (member_access_expression name: [(identifier) @call (generic_name (identifier) @call)])
  (conditional_access_expression (member_binding_expression name: (identifier) @call))])
(object_creation_expression type: [
  (identifier) @call
  (generic_name (identifier) @call)
  (qualified_name name: (identifier) @call)])
(attribute name: (identifier) @call)
(base_list [
  (identifier) @base
  (generic_name (identifier) @base)
  (qualified_name name: (identifier) @base)
  (primary_constructor_base_type type: (identifier) @base)])
(using_directive [(identifier) (qualified_name)] @import)

(comment) @comment
(field_declaration) @whole
(event_field_declaration) @whole
(variable_declaration) @whole
