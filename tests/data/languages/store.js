import { readFile } from 'node:fs/promises';
const path = require('path');

export const LIMIT = 100;
let opened = 0;

/**
 * Keeps parts by name.
 */
export class Store extends Map {
  #source = null;
  static shared = new Store();

  constructor(source) {
    super();
    this.#source = source;
  }

  get size() {
    return super.size;
  }

  // Adds one part.
  add(part) {
    if (this.size >= LIMIT) throw new Error(part.name);
    this.set(part.name, part);
  }

  static async load(file) {
    const store = new Store(file);
    for (const part of parse(await readFile(file))) store.add(part);
    return store;
  }
}

/** Reads lines. */
export function parse(text) {
  return String(text).split('\n').map((line) => JSON.parse(line));
}

export const missing = (store) => [...store.values()].filter((part) => !part.count);

const helpers = {
  join(name) {
    return path.join('parts', name);
  },
};

export default function* main() {
  opened += 1;
  yield missing(Store.shared);
}
