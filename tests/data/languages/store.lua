local json = require("json")

local M = {}

local LIMIT = 100

--- Keeps parts by name.
function M.new(source)
  return setmetatable({ source = source, parts = {} }, { __index = M })
end

-- Adds one part.
function M:add(part)
  if #self.parts >= LIMIT then
    error("full: " .. part.name)
  end
  table.insert(self.parts, part)
end

local function parse(line)
  return json.decode(line)
end

M.load = function(path)
  local store = M.new(path)
  for line in io.lines(path) do
    store:add(parse(line))
  end
  return store
end

function missing(store)
  return store:missing()
end

local count = function(store)
  return #store.parts
end

return M
