<?php

function run($text, $database) {
    eval($text); // RISK eval
    system("ls $text"); // RISK shell
    $regex->exec($text);
    echo `ls $text`; // RISK shell
    unserialize($text); // RISK deserialise
    unserialize($text, ['allowed_classes' => false]);
    include $text; // RISK include
    include 'plain.php';
    md5($text); // RISK weak-hash
    $database->query("SELECT name FROM users WHERE id = $text"); // RISK sql
    $database->query("SELECT name FROM users WHERE id = " . $text); // RISK sql
    $database->prepare("SELECT name FROM users WHERE id = ?");
    $password = 'hunter2hunter'; // RISK secret
}
