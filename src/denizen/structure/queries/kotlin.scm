(class_declaration (modifiers (class_modifier) @_enum) name: (identifier) @name (#eq? @_enum "enum")) @enum
(class_declaration "interface" name: (identifier) @name) @interface
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @object
(companion_object name: (identifier) @name) @object
(enum_entry . (identifier) @name) @variant
(type_alias type: (identifier) @name) @type
(function_declaration name: (identifier) @name) @function
(secondary_constructor "constructor" @name) @function
(source_file (property_declaration (variable_declaration . (identifier) @name)) @variable)
(class_body (property_declaration (variable_declaration . (identifier) @name)) @field)
(enum_class_body (property_declaration (variable_declaration . (identifier) @name)) @field)
(class_parameter ["val" "var"] (identifier) @name) @field

(call_expression . [(identifier) @call (navigation_expression (identifier) @call .)])
(annotation [
  (user_type (identifier) @call .)
  (constructor_invocation (user_type (identifier) @call .))])
(delegation_specifier [
  (user_type (identifier) @base .)
  (constructor_invocation (user_type (identifier) @base .))
  (explicit_delegation (user_type (identifier) @base .))])
(import (qualified_identifier) @import)

[(line_comment) (block_comment)] @comment
