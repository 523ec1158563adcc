fun run(text: String) {
    Runtime.getRuntime().exec(text) // RISK shell
    ObjectInputStream(stream) // RISK deserialise
    MessageDigest.getInstance("SHA-1") // RISK weak-hash
    database.query("SELECT name FROM users WHERE id = $text") // RISK sql
    database.query("SELECT name FROM users WHERE id = ?", text)
    val password = "hunter2hunter" // RISK secret
}
