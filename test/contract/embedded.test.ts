import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import type { Harness } from './harness.ts';
import { describeStore } from './store.contract.ts';

async function open(): Promise<Harness> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-store-'));
  const clock = manualClock();
  const { log } = collectLog();
  const store = await openEmbeddedStore({
    dataDir,
    sessionKeyPrefix: 'mcp:session:',
    clock,
    log,
  });
  return {
    store,
    other: store,
    advance: async (ms) => clock.advance(ms),
    async close() {
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

describeStore('embedded', open, { isShared: false });
