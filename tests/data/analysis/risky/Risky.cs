class Risky
{
    void Run(string text)
    {
        new BinaryFormatter(); // RISK deserialise
        MD5.Create(); // RISK weak-hash
        SHA256.Create();
        Html.Raw(text); // RISK html
        Process.Start("cmd.exe", text); // RISK shell
        command.Text = $"SELECT name FROM users WHERE id = {text}"; // RISK sql
        command.Text = "SELECT name FROM users WHERE id = @id";
        var password = "hunter2hunter"; // RISK secret
    }
}
