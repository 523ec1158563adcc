Gem::Specification.new do |s|
  s.add_dependency "rack", ">= 3"
  s.add_runtime_dependency("thor")
end
