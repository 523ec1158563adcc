import type { Reader } from './reader';
import { parse } from './parse';

export const LIMIT: number = 100;

export type Name = string | number;

/** Where parts come from. */
export interface Source<T = Part> {
  readonly name: string;
  read(count: number): Promise<T[]>;
}

export enum State {
  Full = 'full',
  Empty = 'empty',
}

export interface Part {
  name: Name;
  count?: number;
}

/** Keeps parts by name. */
@sealed
export abstract class Store<T extends Part> implements Source<T> {
  readonly name = 'store';
  private parts = new Map<Name, T>();

  constructor(private readonly reader: Reader) {}

  @logged()
  async read(count: number): Promise<T[]> {
    const text = await this.reader.text();
    return parse<T>(text).slice(0, count);
  }

  abstract check(part: T): boolean;

  get state(): State {
    return this.parts.size >= LIMIT ? State.Full : State.Empty;
  }
}

export function sealed(target: unknown): void;
export function sealed(target: unknown): void {
  Object.seal(target);
}

function logged() {
  return (target: unknown): void => sealed(target);
}

namespace Shelf {
  export const width = 3;
  export function place(part: Part): string {
    return String(part.name);
  }
}

declare module 'parts' {
  export function open(name: string): Part;
}
