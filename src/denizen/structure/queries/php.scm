(namespace_definition name: (namespace_name) @name body: (_)) @module
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @variant
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @function
(property_declaration (property_element name: (variable_name (name) @name)) @field)
(const_declaration (const_element . (name) @name) @constant)
(function_call_expression function: (name) @_define arguments: (arguments . (argument (string (string_content) @name)))
  (#eq? @_define "define")) @constant

(function_call_expression function: [(name) @call (qualified_name (name) @call)])
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression [(name) @call (qualified_name (name) @call)])
(attribute [(name) @call (qualified_name (name) @call)])
(base_clause [(name) @base (qualified_name (name) @base)])
(class_interface_clause [(name) @base (qualified_name (name) @base)])
(use_declaration [(name) @base (qualified_name (name) @base)])
(namespace_use_clause [(name) (qualified_name)] @import)
(include_expression (_) @import)
(include_once_expression (_) @import)
(require_expression (_) @import)
(require_once_expression (_) @import)

(comment) @comment
(property_declaration) @whole
(const_declaration) @whole
