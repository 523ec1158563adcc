void run(const std::string &text) {
    char buffer[10];
    strcpy(buffer, text.c_str()); // RISK memory
    std::system(text.c_str()); // RISK shell
    database.query("SELECT name FROM users WHERE id = " + text); // RISK sql
    std::string password = "hunter2hunter"; // RISK secret
}
