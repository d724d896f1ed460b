import { wrapStore } from '../stores/wrapped-store.ts';

/** An embedded store of its own. */
export async function openKeeperStore() {
  const { store, remove } = await wrapStore(() => ({}));
  return {
    store,
    async close() {
      await store.close();
      await remove();
    },
  };
}
