import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newSecret } from './seal.ts';

const FILE = 'oauth-state-secret';

/** The secret of a gateway with the embedded store: kept in DATA_DIR, made there the first time. */
export async function keptSecret(dataDir: string): Promise<string> {
  const file = join(dataDir, FILE);
  const kept = await readFile(file, 'utf8').catch(absent);
  if (kept.trim() !== '') return kept.trim();
  const secret = newSecret();
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

/** A file that is there and cannot be read must not be replaced: what it sealed would be lost. */
function absent(error: unknown): string {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
  throw error;
}
