def plain(value)
  value
end

def sort_out(values, wanted)
  for value in values
    if value == wanted && value
      return plain(value)
    end
  end
  nil
end
