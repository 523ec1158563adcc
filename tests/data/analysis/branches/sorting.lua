local function plain(value)
  return value
end

local function sort_out(values, wanted)
  for _, value in ipairs(values) do
    if value == wanted and value then
      return plain(value)
    end
  end
  return nil
end
