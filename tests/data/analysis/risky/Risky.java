class Risky {
    private static final String PASSWORD = "hunter2hunter"; // RISK secret

    void run(String text) {
        Runtime.getRuntime().exec(text); // RISK shell
        new ObjectInputStream(stream); // RISK deserialise
        MessageDigest.getInstance("MD5"); // RISK weak-hash
        MessageDigest.getInstance("SHA-256");
        Cipher.getInstance("DES/ECB/PKCS5Padding"); // RISK weak-cipher
        statement.executeQuery("SELECT name FROM users WHERE id = " + text); // RISK sql
        connection.prepareStatement("SELECT name FROM users WHERE id = ?");
    }
}
