(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(struct_type (field_declaration_list (field_declaration name: (field_identifier) @name) @field))
(interface_type (method_elem name: (field_identifier) @name) @function)
(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @container
    (generic_type type: (type_identifier) @container)
    (pointer_type [(type_identifier) @container (generic_type type: (type_identifier) @container)])]))
  name: (field_identifier) @name) @method
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))

(call_expression function: [(identifier) @call (selector_expression field: (field_identifier) @call)])
(call_expression function: (type_instantiation_expression type: (type_identifier) @call))
(composite_literal type: [(type_identifier) @call (generic_type type: (type_identifier) @call)])
(import_spec path: (_) @import)

(comment) @comment
(type_declaration) @whole
(const_declaration) @whole
(var_declaration) @whole
(var_spec_list) @whole
