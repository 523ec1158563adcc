(class name: (_) @name) @class
(module name: (_) @name) @module
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(assignment left: (constant) @name) @constant
(call method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name)
  (#match? @_attr "^attr_(reader|writer|accessor)$")) @field

(call method: [(identifier) (constant)] @call)
(superclass [(constant) @base (scope_resolution name: (constant) @base)])
(call method: (identifier) @_include arguments: (argument_list [(constant) @base (scope_resolution name: (constant) @base)])
  (#any-of? @_include "include" "extend" "prepend"))
(call method: (identifier) @_require arguments: (argument_list (string) @import)
  (#any-of? @_require "require" "require_relative" "load"))

(comment) @comment
