// The audit log of a test's gateway, in a file of its own.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { closeAfterTest } from '../lifetimes.ts';
import { createTemporaryFolder } from '../temporary-folder.ts';

export type AuditLine = Readonly<Record<string, unknown>> & {
  readonly time: string;
  readonly event: string;
  readonly outcome: string;
};

export interface AuditLog {
  readonly path: string;
  /** Turns it on. */
  readonly env: { readonly AUDIT_LOG: string };
  /** Parsed; one that is no JSON object fails the test. */
  lines(): readonly AuditLine[];
  text(): string;
}

export async function createAuditLog(): Promise<AuditLog> {
  const folder = closeAfterTest(await createTemporaryFolder());
  const path = join(folder.path, 'audit.log');
  const text = () => readFileSync(path, 'utf8');
  return {
    path,
    env: { AUDIT_LOG: `file:${path}` },
    lines: () => parseAuditLines(text()),
    text,
  };
}

export function parseAuditLines(text: string): readonly AuditLine[] {
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
