// How the settings choose a store in memory, and what is known of it before it is open.
import type { ChosenStore, StoreKind } from '../../../src/config/groups/store.ts';
import { flag } from '../../../src/config/rules.ts';
import { defineSetting } from '../../../src/config/setting.ts';

export interface MemoryStoreConfig extends ChosenStore {
  readonly kind: 'memory';
}

const inMemory = defineSetting('STORE_IN_MEMORY', flag, {
  default: false,
  summary: 'Whether nothing is kept.',
});

export const memoryKind: StoreKind<MemoryStoreConfig> = {
  read: (read) => (read(inMemory) ? { kind: 'memory', dataDir: '' } : undefined),
  isShared: false,
  describe: () => 'in the memory of this process',
  describeBriefly: () => 'in memory',
  model: { kind: 'memory', dataDir: '' },
};
