// The two Wycheproof files about JSON Web Signatures, read strictly.
import type { JsonWebKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Vector {
  readonly id: number;
  readonly comment: string;
  readonly jws: string;
  readonly valid: boolean;
}

export interface Group {
  readonly comment: string;
  /** What a provider would show; empty for groups of a shared secret. */
  readonly publicKeys: readonly JsonWebKey[];
  readonly privateKeys: readonly JsonWebKey[];
  readonly vectors: readonly Vector[];
}

/** @throws Error that says what is wrong with the file. */
export function readCorpus(folder: string, name: string): readonly Group[] {
  const file = join(folder, name);
  const content = record(JSON.parse(readFileSync(file, 'utf8')), file);
  const groups = list(content.testGroups, `${file}: testGroups`).map((group) => readGroup(group));
  const count = groups.reduce((sum, { vectors }) => sum + vectors.length, 0);
  if (count === 0 || count !== content.numberOfTests) {
    throw new Error(`${file} holds ${count} vectors and says ${content.numberOfTests}`);
  }
  return groups;
}

function readGroup(value: unknown): Group {
  const group = record(value, 'a group');
  return {
    comment: text(group.comment),
    publicKeys: keysOf(group.public),
    privateKeys: keysOf(group.private),
    vectors: list(group.tests, 'tests').map(readVector),
  };
}

function readVector(value: unknown): Vector {
  const { tcId: id, comment, jws, result } = record(value, 'a vector');
  if (typeof id !== 'number') throw new Error('a vector has no number');
  if (result !== 'valid' && result !== 'invalid') throw new Error(`vector ${id} has no result`);
  return { id, comment: text(comment), jws: text(jws), valid: result === 'valid' };
}

/** One key, or a set of them. */
function keysOf(value: unknown): readonly JsonWebKey[] {
  if (value === undefined) return [];
  const key = record(value, 'a key');
  return 'keys' in key ? list(key.keys, 'keys').map((one) => record(one, 'a key')) : [key];
}

function record(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${what} is not an object`);
  }
  return Object.fromEntries(Object.entries(value));
}

function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not a list`);
  return value;
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new Error('a text is missing');
  return value;
}
