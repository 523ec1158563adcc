(namespace_definition name: (_) @name) @module
(class_specifier name: (_) @name body: (_) @body) @class
(concept_definition name: (identifier) @name) @type
(alias_declaration name: (type_identifier) @name) @type
(function_definition declarator: [
  (function_declarator declarator: (_) @name)
  (_ (function_declarator declarator: (_) @name))
  (_ (_ (function_declarator declarator: (_) @name)))]) @function
(declaration declarator: [
  (function_declarator declarator: (_) @name)
  (_ (function_declarator declarator: (identifier) @name))
  (_ (_ (function_declarator declarator: (identifier) @name)))]) @declaration
(field_declaration declarator: [
  (function_declarator declarator: (_) @name)
  (_ (function_declarator declarator: (field_identifier) @name))]) @declaration
(field_declaration declarator: [
  (field_identifier) @name
  (_ declarator: (field_identifier) @name)
  (reference_declarator (field_identifier) @name)
  (_ declarator: (_ declarator: (field_identifier) @name))]) @field

(call_expression function: [
  (identifier) @call
  (field_expression field: (field_identifier) @call)
  (field_expression field: (template_method name: (field_identifier) @call))
  (template_function name: (identifier) @call)
  (qualified_identifier name: [(identifier) @call (template_function name: (identifier) @call)])
  (qualified_identifier name: (qualified_identifier name: [
    (identifier) @call (template_function name: (identifier) @call)]))])
(new_expression type: [(type_identifier) @call (template_type name: (type_identifier) @call)])
(base_class_clause [
  (type_identifier) @base
  (template_type name: (type_identifier) @base)
  (qualified_identifier name: (type_identifier) @base)])

(template_declaration) @whole
