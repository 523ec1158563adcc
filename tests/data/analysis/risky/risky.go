package risky

func run(text string) {
	exec.Command("sh", "-c", text) // RISK shell
	exec.Command("ls", text)
	md5.New() // RISK weak-hash
	client := &tls.Config{InsecureSkipVerify: true} // RISK tls
	template.HTML(text) // RISK html
	database.Query("SELECT name FROM users WHERE id = " + text) // RISK sql
	database.Query("SELECT name FROM users WHERE id = ?", text)
	password := "hunter2hunter" // RISK secret
}
