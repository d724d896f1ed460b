import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryFolder {
  readonly path: string;
  /** Removes it with all that is in it. */
  close(): Promise<void>;
}

export async function createTemporaryFolder(): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), 'postern-test-'));
  return { path, close: () => rm(path, { recursive: true, force: true }) };
}
