const child_process = require('child_process');

function run(text: string, element: Element, database: Database) {
  eval(text); // RISK eval
  new Function(text); // RISK eval
  setTimeout('go()', 10); // RISK eval
  setTimeout(() => text, 10);
  child_process.exec('ls ' + text); // RISK shell
  /ls/.exec(text);
  element.innerHTML = text; // RISK html
  element.innerHTML = '';
  document.write(text); // RISK html
  crypto.createHash('md5'); // RISK weak-hash
  crypto.createHash('sha256');
  https.request({ rejectUnauthorized: false }); // RISK tls
  database.query(`SELECT name FROM users WHERE id = ${text}`); // RISK sql
  database.query('SELECT name FROM users WHERE id = ' + text); // RISK sql
  database.query('SELECT name FROM users WHERE id = ?', [text]);
}

const apiKey: string = 'swordfish-0815'; // RISK secret
