// The driver of a store in memory; its ports are in a folder of their own, which is loaded where it is used.
import { defineStore } from '../../../src/store/open.ts';
import type { MemoryStoreConfig } from './store-kind.ts';

export const memoryDriver = defineStore<MemoryStoreConfig>({
  kind: 'memory',
  async open(_chosen, _settings, { clock }) {
    const { openMemoryStore } = await import('./memory-store.ts');
    return openMemoryStore(clock);
  },
});
