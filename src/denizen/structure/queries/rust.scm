(struct_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(union_item name: (type_identifier) @name) @union
(trait_item name: (type_identifier) @name) @trait
(impl_item type: (_) @name) @impl
(type_item name: (type_identifier) @name) @type
(associated_type name: (type_identifier) @name) @type
(mod_item name: (identifier) @name body: (_)) @module
(enum_variant name: (identifier) @name) @variant
(field_declaration name: (field_identifier) @name) @field
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @variable
(macro_definition name: (identifier) @name) @macro

(call_expression function: [
  (identifier) @call
  (field_expression field: (field_identifier) @call)
  (scoped_identifier name: (identifier) @call)
  (generic_function function: [
    (identifier) @call
    (scoped_identifier name: (identifier) @call)
    (field_expression field: (field_identifier) @call)])])
(struct_expression name: [(type_identifier) @call (scoped_type_identifier name: (type_identifier) @call)])
(macro_invocation macro: [(identifier) @call (scoped_identifier name: (identifier) @call)])
(impl_item trait: [
  (type_identifier) @base
  (generic_type type: (type_identifier) @base)
  (scoped_type_identifier name: (type_identifier) @base)])
(use_declaration argument: (_) @import)
(mod_item name: (identifier) @import !body)

[(line_comment) (block_comment)] @comment
(attribute_item) @attribute
