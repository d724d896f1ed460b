// The two Wycheproof files about JSON Web Signatures, read strictly.
import type { JsonWebKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type JsonObject } from '../../src/platform/json.ts';

export interface Vector {
  readonly id: number;
  readonly comment: string;
  readonly jws: string;
  readonly valid: boolean;
}

export interface Group {
  readonly comment: string;
  /** The keys that a provider would publish; empty for groups of a shared secret. */
  readonly publicKeys: readonly JsonWebKey[];
  readonly privateKeys: readonly JsonWebKey[];
  readonly vectors: readonly Vector[];
}

/** @throws Error that says what is wrong with the file. */
export function readCorpus(folder: string, name: string): readonly Group[] {
  const file = join(folder, name);
  const content = expectObject(JSON.parse(readFileSync(file, 'utf8')), file);
  const groups = expectArray(content.testGroups, `${file}: testGroups`).map((group) =>
    readGroup(group),
  );
  const count = groups.reduce((sum, { vectors }) => sum + vectors.length, 0);
  if (count === 0 || count !== content.numberOfTests) {
    throw new Error(`${file} holds ${count} vectors and says ${content.numberOfTests}`);
  }
  return groups;
}

function readGroup(value: unknown): Group {
  const group = expectObject(value, 'a group');
  return {
    comment: expectString(group.comment),
    publicKeys: readKeys(group.public),
    privateKeys: readKeys(group.private),
    vectors: expectArray(group.tests, 'tests').map(readVector),
  };
}

function readVector(value: unknown): Vector {
  const { tcId: id, comment, jws, result } = expectObject(value, 'a vector');
  if (typeof id !== 'number') throw new Error('a vector has no number');
  if (result !== 'valid' && result !== 'invalid') throw new Error(`vector ${id} has no result`);
  return { id, comment: expectString(comment), jws: expectString(jws), valid: result === 'valid' };
}

/** One key, or a set of them. */
function readKeys(value: unknown): readonly JsonWebKey[] {
  if (value === undefined) return [];
  const key = expectObject(value, 'a key');
  return 'keys' in key
    ? expectArray(key.keys, 'keys').map((one) => expectObject(one, 'a key'))
    : [key];
}

function expectObject(value: unknown, what: string): JsonObject {
  if (!isObject(value)) throw new Error(`${what} is not an object`);
  return value;
}

function expectArray(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not an array`);
  return value;
}

function expectString(value: unknown): string {
  if (typeof value !== 'string') throw new Error('a string is missing');
  return value;
}
