fn run(text: &str) {
    Command::new("sh").arg("-c"); // RISK shell
    Command::new("ls");
    Md5::new(); // RISK weak-hash
    client.danger_accept_invalid_certs(true); // RISK tls
    unsafe { std::hint::unreachable_unchecked() } // RISK memory
    database.execute(&format!("DELETE FROM users WHERE id = {}", text)); // RISK sql
    database.execute("DELETE FROM users WHERE id = ?");
    let token: &str = "swordfish-0815"; // RISK secret
}
