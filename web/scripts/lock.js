// Takes addresses out of package-lock.json: `npm ci` finds packages by name, version and digest in any registry.
import { readFileSync, writeFileSync } from "node:fs";

const path = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(path, "utf8"));
for (const each of Object.values(lock.packages)) {
  delete each.resolved;
  delete each.funding;
}
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
