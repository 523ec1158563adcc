defp deps do
  [{:phoenix, "~> 1.8"}, {:jason, ">= 0.0.0"}]
end
