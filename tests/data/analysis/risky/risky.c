void run(char *text) {
    char buffer[10];
    gets(buffer); // RISK memory
    fgets(buffer, 10, stdin);
    strcpy(buffer, text); // RISK memory
    scanf("%s", buffer); // RISK memory
    scanf("%9s", buffer);
    printf(text); // RISK format
    printf("%s", text);
    system(text); // RISK shell
    system("ls");
    const char *password = "hunter2hunter"; // RISK secret
}
