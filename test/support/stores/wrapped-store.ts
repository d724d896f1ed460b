// A real store of which single steps can be made to wait or fail: faults that a test must hit exactly.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/platform/clock.ts';
import { openEmbeddedStore } from '../../../src/store/embedded/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { collectLog } from '../gateway/log.ts';

export interface WrappedStore {
  readonly store: Store;
  /** Once its gateway has closed the store. */
  remove(): Promise<void>;
}

/** `steps` are those of the store that differ, made from the real ones. */
export async function wrapStore(
  steps: (store: Store) => Partial<Store>,
  clock = systemClock,
): Promise<WrappedStore> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'));
  const sessionKeyPrefix = 'mcp:session:';
  const store = await openEmbeddedStore({
    dataDir,
    sessionKeyPrefix,
    clock,
    log: collectLog().log,
  });
  return {
    store: { ...store, ...steps(store) },
    remove: () => rm(dataDir, { recursive: true, force: true }),
  };
}
