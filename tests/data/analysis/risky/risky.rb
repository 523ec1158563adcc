def run(text)
  eval(text) # RISK eval
  system("ls #{text}") # RISK shell
  system("ls", text)
  `ls #{text}` # RISK shell
  Marshal.load(text) # RISK deserialise
  YAML.load(text) # RISK deserialise
  YAML.safe_load(text)
  text.html_safe # RISK html
  Digest::MD5.hexdigest(text) # RISK weak-hash
  database.execute("SELECT name FROM users WHERE id = #{text}") # RISK sql
  database.execute("SELECT name FROM users WHERE id = ?", text)
  password = "hunter2hunter" # RISK secret
end
