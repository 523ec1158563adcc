local function run(text, database)
  load(text) -- RISK eval
  os.execute("ls " .. text) -- RISK shell
  os.execute("ls")
  database:execute("SELECT name FROM users WHERE id = " .. text) -- RISK sql
  local password = "hunter2hunter" -- RISK secret
end
