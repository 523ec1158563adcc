func run(_ text: String) {
    page.evaluateJavaScript(text) // RISK eval
    Insecure.MD5.hash(data: text) // RISK weak-hash
    NSKeyedUnarchiver.unarchiveObject(with: text) // RISK deserialise
    database.run("SELECT name FROM users WHERE id = \(text)") // RISK sql
    database.run("SELECT name FROM users WHERE id = ?", text)
    let password = "hunter2hunter" // RISK secret
}
